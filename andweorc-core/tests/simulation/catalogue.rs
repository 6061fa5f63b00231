//! The catalogue: programs of the kinds that services are made of.

use crate::program::*;

/// All of them.
pub(crate) fn catalogue() -> Vec<Program> {
    let mut all = pipelines();
    all.extend(fans());
    all.extend(handlers());
    all.extend(locks());
    all.extend(others());
    all
}

/// A pipeline with a task a stage, and a bounded channel before each but the first. The first may
/// wait for its input.
fn pipeline(name: Tag, workers: usize, capacity: u32, stages: &[(Tag, f64)]) -> Program {
    let mut p = Program::new(name, workers).exact();
    let channels: Vec<usize> = stages.iter().skip(1).map(|_| p.channel(capacity)).collect();
    for (i, &(stage, us)) in stages.iter().enumerate() {
        let mut ops = Vec::new();
        if i > 0 {
            ops.push(Op::Recv(channels[i - 1]));
        }
        ops.push(cpu(us));
        match channels.get(i) {
            Some(&next) => ops.push(Op::Send(next)),
            None => ops.push(Op::Progress),
        }
        p.tasks(stage, 1, &ops);
        p.targets.push(Target::Task(stage));
    }
    p
}

fn pipelines() -> Vec<Program> {
    let mut with_input = Program::new("pipeline of 3 fed by timers", 2);
    let (a, b) = (with_input.channel(8), with_input.channel(8));
    with_input.tasks("source", 2, &[wait("tick", 500.0), cpu(40.0), Op::Send(a)]);
    with_input.tasks("parse", 1, &[Op::Recv(a), span("parse", 210.0), Op::Send(b)]);
    with_input.tasks("store", 1, &[Op::Recv(b), span("store", 160.0), Op::Progress]);
    vec![
        pipeline("pipeline of 2, 600/400", 2, 8, &[("a", 600.0), ("b", 400.0)]),
        pipeline("pipeline of 2, one worker", 1, 8, &[("a", 600.0), ("b", 400.0)]),
        pipeline("pipeline of 2, capacity 1", 2, 1, &[("a", 60.0), ("b", 41.0)]),
        pipeline("pipeline of 2, short", 2, 32, &[("a", 13.0), ("b", 9.0)]),
        pipeline("pipeline of 3, 2 workers", 2, 4, &[("a", 311.3), ("b", 520.7), ("c", 170.9)]),
        pipeline("pipeline of 3, 4 workers", 4, 4, &[("a", 310.0), ("b", 520.0), ("c", 480.0)]),
        pipeline("pipeline of 4", 4, 16, &[("a", 90.0), ("b", 70.0), ("c", 110.0), ("d", 40.0)]),
        pipeline(
            "pipeline of 5, 8 workers",
            8,
            4,
            &[("a", 200.0), ("b", 230.0), ("c", 190.0), ("d", 260.0), ("e", 120.0)],
        ),
        with_input.targets(&[Target::Span("parse"), Target::Span("store"), Target::Wait("tick")]),
    ]
}

fn fans() -> Vec<Program> {
    let mut pool = Program::new("fan-out to 4 and in", 4);
    let (work, done) = (pool.channel(16), pool.channel(16));
    pool.tasks("scatter", 1, &[cpu(30.0), Op::Send(work)]);
    pool.tasks("crunch", 4, &[Op::Recv(work), span("crunch", 190.0), Op::Send(done)]);
    pool.tasks("gather", 1, &[Op::Recv(done), span("merge", 55.0), Op::Progress]);

    let mut joined = Program::new("spawn 3 and join", 2);
    let part = joined.kind("part", &[span("load", 80.0), wait("disk", 300.0), span("sum", 120.0)]);
    let ops = [
        vec![wait_exp("client", 600.0), cpu(50.0)],
        vec![Op::Spawn(part); 3],
        vec![Op::Join; 3],
        vec![cpu(90.0), Op::Progress],
    ];
    joined.tasks("root", 3, &ops.concat());

    let mut requests = Program::new("a task a request", 4);
    let handle =
        requests.kind("handle", &[span("parse", 70.0), wait("db", 900.0), span("render", 130.0)]);
    requests.tasks(
        "connection",
        6,
        &[
            wait("client", 700.0),
            Op::Begin,
            cpu(20.0),
            Op::Spawn(handle),
            Op::Join,
            Op::End,
            Op::Progress,
        ],
    );
    vec![
        pool.targets(&[Target::Span("crunch"), Target::Span("merge"), Target::Task("scatter")]),
        joined
            .targets(&[Target::Span("load"), Target::Task("part"), Target::Task("root")])
            .seeds(2),
        requests.targets(&[Target::Span("parse"), Target::Task("handle"), Target::Wait("db")]),
    ]
}

/// Handlers that parse, wait and render, for clients that think in between.
pub(crate) fn handlers_of(name: Tag, workers: usize, clients: usize, think: f64) -> Program {
    let mut p = Program::new(name, workers);
    p.tasks(
        "handler",
        clients,
        &[
            wait_exp("think", think),
            Op::Begin,
            span("parse", 200.0),
            wait_exp("db", 1500.0),
            span("render", 400.0),
            Op::End,
            Op::Progress,
        ],
    );
    p.targets(&[Target::Span("parse"), Target::Span("render"), Target::Wait("db")])
        .units(600)
        .seeds(4)
}

fn handlers() -> Vec<Program> {
    let mut shares = Program::new("functions inside a span", 2);
    shares.tasks(
        "handler",
        5,
        &[
            wait("client", 800.0),
            Op::Begin,
            function("request", "decode", 90.0),
            function("request", "hash", 110.0),
            function("request", "encode", 100.0),
            Op::End,
            Op::Progress,
        ],
    );
    let share =
        |function: Tag, us: f64| Target::Share { span: "request", function, share: us / 300.0 };
    vec![
        handlers_of("handlers, low load", 2, 3, 6000.0),
        handlers_of("handlers, medium load", 2, 6, 2500.0),
        handlers_of("handlers, saturating load", 2, 14, 500.0).seeds(16),
        handlers_of("handlers, one worker", 1, 5, 900.0),
        handlers_of("handlers, 8 workers", 8, 40, 900.0),
        shares.targets(&[share("decode", 90.0), share("hash", 110.0), Target::Span("request")]),
    ]
}

fn locks() -> Vec<Program> {
    let mut mutex = Program::new("mutex-bound", 4).exact();
    let lock = mutex.semaphore(1);
    let ops =
        [vec![span("outside", 120.0)], locked(lock, &[span("inside", 80.0)]), vec![Op::Progress]];
    mutex.tasks("worker", 4, &ops.concat());

    let mut across = Program::new("mutex held across I/O", 2);
    let lock = across.semaphore(1);
    let held = locked(lock, &[span("inside", 60.0), wait("disk", 150.0)]);
    let ops = [vec![Op::Begin, span("outside", 250.0)], held, vec![Op::End, Op::Progress]];
    across.tasks("worker", 5, &ops.concat());

    let mut limited = Program::new("semaphore of 3", 4);
    let permits = limited.semaphore(3);
    let held = holding(permits, 1, &[span("query", 90.0), wait("db", 400.0)]);
    let ops = [vec![Op::Begin, span("prepare", 130.0)], held, vec![Op::End, Op::Progress]];
    limited.tasks("client", 8, &ops.concat());

    let mut rwlock = Program::new("RwLock, many readers", 4);
    let lock = rwlock.semaphore(READERS);
    let read = holding(lock, 1, &[span("read", 100.0)]);
    rwlock.tasks("reader", 4, &[read, vec![span("render", 70.0), Op::Progress]].concat());
    let write = holding(lock, READERS, &[span("write", 60.0)]);
    rwlock.tasks("writer", 1, &[vec![wait("tick", 700.0)], write].concat());
    vec![
        mutex.targets(&[Target::Span("inside"), Target::Span("outside")]),
        across.targets(&[Target::Span("inside"), Target::Span("outside"), Target::Wait("disk")]),
        limited.targets(&[Target::Span("query"), Target::Span("prepare"), Target::Wait("db")]),
        rwlock.targets(&[Target::Span("read"), Target::Span("write"), Target::Span("render")]),
    ]
}

fn others() -> Vec<Program> {
    let mut timers = Program::new("timer-driven", 2);
    timers.tasks("poller", 3, &[wait("interval", 1000.0), span("scan", 260.0), Op::Progress]);

    let mut batcher = Program::new("batcher", 2);
    let items = batcher.channel(64);
    batcher.tasks("producer", 2, &[span("make", 35.0), Op::Send(items)]);
    let batch = vec![
        Op::Repeat(16, vec![Op::Recv(items), cpu(4.0)]),
        span("flush", 220.0),
        wait("disk", 180.0),
        Op::Progress,
    ];
    batcher.tasks("batcher", 1, &batch);

    let mut select = Program::new("select loop", 2);
    let (commands, data) = (select.channel(4), select.channel(16));
    select.tasks(
        "commander",
        1,
        &[wait("operator", 900.0), span("command", 50.0), Op::Send(commands)],
    );
    select.tasks("source", 2, &[wait("net", 140.0), span("decode", 60.0), Op::Send(data)]);
    let branches = vec![
        (Branch::Recv(commands), vec![span("control", 150.0)]),
        (Branch::Recv(data), vec![span("apply", 85.0), Op::Progress]),
    ];
    select.tasks("loop", 1, &[Op::Select(branches)]);

    let mut backpressure = Program::new("backpressure", 4);
    let queue = backpressure.channel(2);
    backpressure.tasks("reader", 4, &[wait("socket", 60.0), span("decode", 45.0), Op::Send(queue)]);
    backpressure.tasks("writer", 1, &[Op::Recv(queue), span("write", 75.0), Op::Progress]);

    let mut leader = Program::new("leader and followers", 4).exact();
    let (go, done) = (leader.notify(), leader.channel(4));
    leader.tasks(
        "leader",
        1,
        &[
            span("plan", 120.0),
            Op::NotifyAll(go),
            Op::Recv(done),
            Op::Recv(done),
            Op::Recv(done),
            Op::Progress,
        ],
    );
    leader.tasks("follower", 3, &[Op::Notified(go), span("follow", 180.0), Op::Send(done)]);

    let mut flusher = Program::new("select on messages and a flush", 2);
    let (flush, items) = (flusher.notify(), flusher.channel(32));
    flusher.tasks("clock", 1, &[wait("tick", 800.0), cpu(10.0), Op::NotifyOne(flush)]);
    flusher.tasks("source", 3, &[wait("net", 190.0), span("make", 35.0), Op::Send(items)]);
    let branches = vec![
        (Branch::Notified(flush), vec![span("flush", 170.0)]),
        (Branch::Recv(items), vec![span("add", 55.0), Op::Progress]),
    ];
    flusher.tasks("buffer", 1, &[Op::Select(branches)]);

    let mut turns = Program::new("two that take turns by Notify", 2);
    let (there, back) = (turns.notify(), turns.notify());
    let ops = [span("first", 140.0), Op::NotifyOne(there), Op::Notified(back), Op::Progress];
    turns.tasks("first", 1, &ops);
    let ops = [Op::Notified(there), span("second", 60.0), wait("disk", 90.0), Op::NotifyOne(back)];
    turns.tasks("second", 1, &ops);

    let mut offload = Program::new("blocking-pool offload", 2);
    let hash = offload.kind("hash", &[span("hash", 500.0)]);
    offload.tasks(
        "handler",
        4,
        &[
            wait("client", 600.0),
            Op::Begin,
            span("parse", 110.0),
            Op::SpawnBlocking(hash),
            Op::Join,
            span("render", 140.0),
            Op::End,
            Op::Progress,
        ],
    );

    let mut files = Program::new("blocking file reads", 2);
    let read = files.kind("read", &[wait("disk", 350.0), span("copy", 90.0)]);
    files.tasks(
        "handler",
        6,
        &[
            span("parse", 160.0),
            Op::SpawnBlocking(read),
            Op::Join,
            span("render", 120.0),
            Op::Progress,
        ],
    );

    let mut actor = Program::new("actor with replies", 3);
    let mailbox = actor.channel(8);
    actor.tasks("actor", 1, &[Op::Recv(mailbox), span("act", 70.0), Op::Reply]);
    actor.tasks(
        "client",
        4,
        &[
            span("prepare", 150.0),
            Op::Begin,
            Op::Call(mailbox),
            Op::End,
            span("use", 60.0),
            Op::Progress,
        ],
    );

    let mut ping = Program::new("ping-pong", 2).exact();
    let (there, back) = (ping.channel(1), ping.channel(1));
    ping.tasks("ping", 1, &[span("ping", 90.0), Op::Send(there), Op::Recv(back), Op::Progress]);
    ping.tasks("pong", 1, &[Op::Recv(there), span("pong", 60.0), Op::Send(back)]);

    let mut cpu_bound = Program::new("CPU-saturated handlers", 2);
    cpu_bound.tasks(
        "handler",
        8,
        &[span("parse", 130.0), wait("db", 200.0), span("render", 270.0), Op::Progress],
    );

    let mut single = Program::new("single worker, mixed", 1);
    let queue = single.channel(4);
    single.tasks("producer", 2, &[wait("net", 500.0), span("make", 80.0), Op::Send(queue)]);
    single.tasks("consumer", 1, &[Op::Recv(queue), span("use", 110.0), Op::Progress]);
    single.tasks("janitor", 1, &[wait("tick", 1300.0), span("sweep", 90.0)]);

    let mut cache = Program::new("cache with misses", 2);
    cache.tasks(
        "handler",
        6,
        &[
            wait("client", 400.0),
            Op::Begin,
            span("lookup", 70.0),
            Op::OneIn(4, vec![wait("origin", 900.0), span("fill", 240.0)]),
            span("render", 90.0),
            Op::End,
            Op::Progress,
        ],
    );

    let mut stealing = Program::new("local queues, stealing", 4).local_queues(false, true);
    let (a, b) = (stealing.channel(8), stealing.channel(8));
    stealing.tasks("make", 2, &[span("make", 100.0), Op::Send(a)]);
    stealing.tasks("turn", 3, &[Op::Recv(a), span("turn", 130.0), Op::Send(b)]);
    stealing.tasks("ship", 1, &[Op::Recv(b), span("ship", 40.0), Op::Progress]);

    let mut lifo = Program::new("LIFO slot, stealing", 2).local_queues(true, true);
    let a = lifo.channel(8);
    lifo.tasks("make", 2, &[span("make", 100.0), Op::Send(a)]);
    lifo.tasks("use", 1, &[Op::Recv(a), span("use", 70.0), Op::Progress]);

    vec![
        timers.targets(&[Target::Span("scan"), Target::Wait("interval")]),
        batcher
            .targets(&[Target::Span("make"), Target::Span("flush"), Target::Wait("disk")])
            .units(150),
        select.targets(&[Target::Span("decode"), Target::Span("apply"), Target::Span("control")]),
        backpressure.targets(&[
            Target::Span("decode"),
            Target::Task("writer"),
            Target::Wait("socket"),
        ]),
        leader.targets(&[Target::Span("plan"), Target::Task("follower")]),
        flusher.targets(&[Target::Span("flush"), Target::Span("add"), Target::Wait("net")]),
        turns.targets(&[Target::Span("first"), Target::Span("second"), Target::Wait("disk")]),
        offload.targets(&[Target::Task("hash"), Target::Span("parse"), Target::Wait("client")]),
        files.targets(&[Target::Span("copy"), Target::Span("render")]),
        actor.targets(&[Target::Task("actor"), Target::Span("prepare"), Target::Span("use")]),
        ping.targets(&[Target::Span("ping"), Target::Task("pong")]),
        cpu_bound.targets(&[Target::Span("parse"), Target::Task("handler"), Target::Wait("db")]),
        single.targets(&[Target::Span("make"), Target::Span("use"), Target::Span("sweep")]),
        cache
            .targets(&[Target::Span("lookup"), Target::Span("fill"), Target::Wait("origin")])
            .units(600)
            .seeds(4),
        stealing
            .targets(&[Target::Task("make"), Target::Span("turn"), Target::Span("ship")])
            .seeds(4),
        lifo.targets(&[Target::Task("make"), Target::Task("use")]).seeds(4),
    ]
}
