//! Tasks that are fed by plain threads, which say nothing to andweorc.

use crate::program::{Aim, Part, Program, Runtime, Stage, spawn};
use andweorc_profile::PointKind::{Latency, Progress};
use andweorc_threads as _;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "pool_oneshot",
        about: "four handlers whose sums a pool of two threads does, and answers by oneshots",
        runtime: Runtime::Workers,
        parts: &[("encode", 100), ("crunch", 400)],
        targets: &[Aim::span("crunch"), Aim::span("encode")],
        point: Latency,
        start: pool_oneshot,
    },
    Program {
        name: "router",
        about: "three clients whose messages one thread routes to the tasks of two others, each with a runtime of its own",
        runtime: Runtime::Workers,
        parts: &[("route", 150), ("serve", 250), ("ask", 100)],
        targets: &[Aim::span("route"), Aim::span("serve"), Aim::span("ask")],
        point: Progress,
        start: router,
    },
    Program {
        name: "turnstile",
        about: "a thread that lets tasks in one after the other, and works for each, by blocking channels of tokio",
        runtime: Runtime::Workers,
        parts: &[("admit", 200), ("visit", 250)],
        targets: &[Aim::span("admit"), Aim::span("visit")],
        point: Progress,
        start: turnstile,
    },
];

/// A pool as rayon is one: threads that wait on a condition for jobs.
#[derive(Default)]
struct Pool {
    jobs: Mutex<Vec<oneshot::Sender<()>>>,
    changed: Condvar,
}

impl Pool {
    fn work(&self, part: &Part) {
        loop {
            let mut jobs = self.jobs.lock().expect("nobody panics");
            let job = loop {
                match jobs.pop() {
                    Some(job) => break job,
                    None => jobs = self.changed.wait(jobs).expect("nobody panics"),
                }
            };
            drop(jobs);
            part.run();
            // Whoever asked may be gone: the program ends.
            job.send(()).ok();
        }
    }
}

fn pool_oneshot(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let pool = Arc::<Pool>::default();
    for _ in 0..2 {
        let (pool, crunch) = (pool.clone(), stage.part("crunch"));
        std::thread::spawn(move || pool.work(&crunch));
    }
    for _ in 0..4 {
        let (pool, encode) = (pool.clone(), stage.part("encode"));
        let mut line = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                let (answer, answered) = oneshot::channel();
                pool.jobs.lock().expect("nobody panics").push(answer);
                pool.changed.notify_one();
                answered.await.expect("the pool answers all");
                encode.run();
                request.end();
                line.ask(300).await;
            }
        });
    }
    Ok(())
}

fn router(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (sender, messages) = mpsc::sync_channel::<UnboundedSender<()>>(16);
    let mut servers = Vec::new();
    for _ in 0..2 {
        let (server, mut routed) = unbounded_channel::<UnboundedSender<()>>();
        let serve = stage.part("serve");
        servers.push(server);
        std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.build().expect("a runtime of one thread");
            runtime.block_on(andweorc_tokio::Profile::profiled(
                async move {
                    while let Some(answer) = routed.recv().await {
                        serve.run();
                        answer.send(()).ok();
                    }
                },
                "server",
            ));
        });
    }
    let route = stage.part("route");
    std::thread::spawn(move || {
        for (number, message) in messages.iter().enumerate() {
            route.run();
            servers[number % 2].send(message).ok();
        }
    });
    for _ in 0..3 {
        let (sender, ask) = (sender.clone(), stage.part("ask"));
        spawn("client", async move {
            let (answer, mut answers) = unbounded_channel();
            loop {
                ask.run();
                sender.send(answer.clone()).expect("the router lives");
                answers.recv().await.expect("it has a sender itself");
                done.hit();
            }
        });
    }
    Ok(())
}

fn turnstile(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (queue, mut waiting) = tokio::sync::mpsc::channel::<oneshot::Sender<()>>(8);
    let admit = stage.part("admit");
    std::thread::spawn(move || {
        while let Some(visitor) = waiting.blocking_recv() {
            admit.run();
            visitor.send(()).ok();
        }
    });
    for _ in 0..3 {
        let (queue, visit) = (queue.clone(), stage.part("visit"));
        spawn("visitor", async move {
            loop {
                let (let_in, admitted) = oneshot::channel();
                queue.send(let_in).await.expect("the thread lives");
                admitted.await.expect("all are let in");
                visit.run();
                done.hit();
            }
        });
    }
    Ok(())
}
