//! Services on several hosts, of the kinds that there are.

use crate::hosts::Remote;
use crate::hosts::message::Address;
use crate::hosts::world::System;
use crate::program::*;

/// All of them.
pub(crate) fn catalogue() -> Vec<System> {
    let mut all = pairs();
    all.extend(networks());
    all.extend(trees());
    all.extend(connections());
    all.extend(more_than_once());
    all.extend(others());
    all
}

/// Time on the network of a message that takes about so long.
fn flight(us: i64) -> Cost {
    Cost::Spread(us * 900, us * 1100)
}

fn system(name: Tag, hosts: Vec<Program>, targets: &[Tag]) -> System {
    System {
        name,
        hosts,
        network: flight(200),
        links: Vec::new(),
        aside: Vec::new(),
        targets: targets.iter().copied().map(Target::Span).collect(),
        seeds: 2,
    }
}

fn to(host: usize, inbox: usize) -> Address {
    Address { host, inbox }
}

fn ask(host: usize, inbox: usize) -> Op {
    Op::Remote(Remote::Ask(vec![to(host, inbox)]))
}

fn recv(inbox: usize) -> Op {
    Op::Remote(Remote::Recv(inbox))
}

fn answer() -> Op {
    Op::Remote(Remote::Answer)
}

fn post(host: usize, inbox: usize) -> Op {
    Op::Remote(Remote::Post(to(host, inbox)))
}

/// A service on two workers that does `ops` for each request of so many connections.
fn service(name: Tag, connections: usize, ops: impl Fn(usize) -> Vec<Op>) -> Program {
    let mut p = Program::new(name, 2);
    for n in 0..connections {
        let inbox = p.inbox();
        let ops = [vec![recv(inbox)], ops(n), vec![answer()]].concat();
        p.tasks("connection", 1, &ops);
    }
    p
}

/// A service on two workers with so many clients, each of which goes on with its next request at
/// once.
fn gateway(clients: usize, ops: impl Fn(usize) -> Vec<Op>) -> Program {
    let mut p = Program::new("gateway", 2);
    for n in 0..clients {
        p.tasks("client", 1, &ops(n));
    }
    p
}

/// A gateway that does something before and after it asks the host behind it.
fn plain_gateway(clients: usize, before: f64, after: f64) -> Program {
    gateway(clients, |n| {
        vec![span("parse", before), ask(1, n), span("render", after), Op::Progress]
    })
}

/// A back end that has a lock around what it does most.
fn lock_bound(connections: usize) -> Program {
    let mut p = service("stock", connections, |_| {
        [vec![span("check", 40.0)], locked(0, &[span("stock", 300.0)])].concat()
    });
    p.semaphore(1);
    p
}

fn pairs() -> Vec<System> {
    let query = |n| service("query", n, |_| vec![span("query", 200.0)]);
    let mut fed = Program::new("gateway", 2);
    for n in 0..6 {
        let ops = [wait_exp("client", 1500.0), span("parse", 90.0), ask(1, n), Op::Progress];
        fed.tasks("client", 1, &ops);
    }
    let mut disk = system(
        "a back end that waits for its disk",
        vec![
            plain_gateway(6, 60.0, 90.0),
            service("disk", 6, |_| vec![cpu(30.0), wait("disk", 500.0)]),
        ],
        &["parse"],
    );
    disk.targets.push(Target::Wait("disk"));
    vec![
        system("one client", vec![plain_gateway(1, 80.0, 120.0), query(1)], &["query", "render"]),
        system("three clients", vec![plain_gateway(3, 80.0, 120.0), query(3)], &["query", "parse"]),
        system(
            "the back end at its limit",
            vec![plain_gateway(8, 30.0, 40.0), query(8)],
            &["query", "parse"],
        ),
        system(
            "the gateway at its limit",
            vec![plain_gateway(8, 180.0, 240.0), query(8)],
            &["query", "render"],
        ),
        system(
            "a back end with a lock",
            vec![plain_gateway(8, 30.0, 40.0), lock_bound(8)],
            &["stock", "check", "render"],
        ),
        system("clients that take their time", vec![fed, query(6)], &["query", "parse"]),
        disk,
    ]
}

/// Two services on networks that are faster and slower.
fn networks() -> Vec<System> {
    let on = |name, us| System {
        network: flight(us),
        ..system(name, vec![plain_gateway(8, 80.0, 120.0), lock_bound(8)], &["stock", "render"])
    };
    vec![on("a network of 50 us", 50), on("a network of 1 ms", 1000), on("a network of 5 ms", 5000)]
}

fn trees() -> Vec<System> {
    let both = |n| Op::Remote(Remote::Ask(vec![to(1, n), to(2, n)]));
    let fan = gateway(4, |n| vec![span("parse", 60.0), both(n), span("merge", 90.0), Op::Progress]);
    let inventory = service("inventory", 4, |_| vec![span("lookup", 220.0)]);
    let payments = service("payments", 4, |_| vec![span("charge", 170.0)]);
    let chained =
        service("inventory", 4, |n| vec![span("lookup", 130.0), ask(2, n), span("reserve", 70.0)]);
    let chain = System {
        links: vec![((1, 2), flight(2000))],
        ..system(
            "a chain of three",
            vec![plain_gateway(4, 50.0, 80.0), chained, payments.clone()],
            &["render", "lookup", "charge"],
        )
    };
    let mut shared = lock_bound(8);
    shared.name = "shared";
    let other = gateway(4, |n| vec![span("other", 150.0), ask(2, 4 + n)]);
    let own = gateway(4, |n| vec![span("parse", 80.0), ask(2, n), cpu(60.0), Op::Progress]);
    vec![
        system("fan-out to two", vec![fan, inventory, payments], &["lookup", "charge", "merge"]),
        chain,
        system(
            "a back end of two gateways",
            vec![own, other, shared],
            &["stock", "other", "parse"],
        ),
    ]
}

/// Several requests and answers on one connection.
fn connections() -> Vec<System> {
    let mut pipelined = Program::new("gateway", 2);
    let answers = pipelined.inbox();
    let ops = [
        span("parse", 40.0),
        Op::Remote(Remote::AskOver(to(1, 0), answers)),
        span("render", 60.0),
        Op::Progress,
    ];
    pipelined.tasks("client", 6, &ops);
    let reads =
        [Op::Remote(Remote::Read(answers)), span("frame", 8.0), Op::Remote(Remote::HandOver)];
    pipelined.tasks("reader", 1, &reads);
    let in_order = service("in order", 1, |_| vec![span("query", 160.0)]);

    let mut listens = Program::new("listener", 2);
    let mut sends = Program::new("streamer", 2);
    for n in 0..3 {
        let (items, requests) = (listens.inbox(), sends.inbox());
        let take = Op::Repeat(8, vec![recv(items), span("use", 70.0), Op::Progress]);
        listens.tasks("listener", 1, &[post(1, requests), take]);
        let make = Op::Repeat(8, vec![span("make", 100.0), post(0, n)]);
        sends.tasks("streamer", 1, &[recv(requests), make]);
    }
    vec![
        system("requests on one connection", vec![pipelined, in_order], &["query", "render"]),
        System {
            network: flight(100),
            ..system("streams of items", vec![listens, sends], &["make", "use"])
        },
    ]
}

/// Requests that are sent once more.
fn more_than_once() -> Vec<System> {
    let replica = || {
        let slow = Op::OneIn(8, vec![wait("stall", 3000.0)]);
        service("replica", 4, move |_| vec![slow.clone(), span("query", 150.0)])
    };
    let hedged = |name, first: usize, second: usize, us: i64| {
        let ops = move |n| {
            let all = vec![to(first, n), to(second, n)];
            let hedge = Op::Remote(Remote::Hedge(all, us * 1000));
            vec![span("parse", 60.0), hedge, span("render", 90.0), Op::Progress]
        };
        let hosts = vec![gateway(4, ops), replica(), replica()];
        system(name, hosts, &["query", "render"])
    };
    vec![hedged("hedged requests", 1, 2, 900), hedged("retries", 1, 1, 2500)]
}

fn others() -> Vec<System> {
    // A service of their own hands jobs from one to the other.
    let mut submits = Program::new("submits", 2);
    let mut queue = Program::new("queue", 1);
    let mut works = Program::new("works", 2);
    for n in 0..4 {
        let (done, queued, jobs) = (submits.inbox(), queue.inbox(), works.inbox());
        submits.tasks(
            "client",
            1,
            &[span("parse", 80.0), post(1, queued), recv(done), Op::Progress],
        );
        queue.tasks("queue", 1, &[recv(queued), span("store", 30.0), post(2, n)]);
        works.tasks("job", 1, &[recv(jobs), span("work", 260.0), post(0, n)]);
    }
    let asks = gateway(6, |n| vec![span("parse", 70.0), ask(1, n), ask(2, n), Op::Progress]);
    let database = service("database", 6, |_| vec![span("select", 90.0)]);
    let mut lock = lock_bound(6);
    lock.name = "lock";
    vec![
        system("a queue between", vec![submits, queue, works], &["parse", "store", "work"]),
        System {
            aside: vec![1],
            ..system(
                "a database that takes no part",
                vec![asks, database, lock],
                &["parse", "check", "stock"],
            )
        },
    ]
}
