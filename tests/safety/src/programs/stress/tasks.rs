//! Many tasks that spawn, wait, hand work to each other, panic and end.

use super::*;
use std::sync::atomic::AtomicBool;

pub(super) async fn storm(end: Instant) {
    let (dropped, mut spawned) = (Arc::new(AtomicU64::new(0)), 0u64);
    let done = Arc::new(AtomicU64::new(0));
    let (mut c, mut a, mut p) = (0u64, 0u64, 0u64);
    while Instant::now() < end {
        let mut hs = Vec::new();
        for i in 0..300u64 {
            let g = CountsDrop(dropped.clone());
            spawned += 1;
            let done = done.clone();
            let h = match i % 6 {
                0 => spawn(async move {
                    let _g = g;
                    unit(2).await;
                    done.fetch_add(1, SeqCst);
                }),
                1 => spawn(async move {
                    let _g = g;
                    tokio::time::sleep(Duration::from_micros(300)).await;
                    unit(1).await;
                    done.fetch_add(1, SeqCst);
                }),
                2 => spawn(async move {
                    let _g = g;
                    std::future::pending::<()>().await;
                }),
                3 => spawn(async move {
                    let _g = g;
                    tokio::task::yield_now().await;
                    std::panic::resume_unwind(Box::new(7))
                }),
                4 => spawn(async move {
                    let _g = g;
                    andweorc::task::yield_now().await;
                    unit(0).await;
                    done.fetch_add(1, SeqCst);
                }),
                _ => spawn(async move {
                    let _g = g;
                    let (t, r) = tokio::sync::oneshot::channel();
                    spawn(async move {
                        unit(1).await;
                        let _ = t.send(5);
                    });
                    assert_eq!(r.await, Ok(5));
                    done.fetch_add(1, SeqCst);
                }),
            };
            if i % 6 == 2 || i % 30 == 0 {
                h.abort();
            }
            hs.push((i, h));
        }
        for (i, h) in hs {
            match h.await {
                Ok(()) => {
                    c += 1;
                    if matches!(i % 6, 2 | 3) {
                        fault(format!("kind {} completed", i % 6));
                    }
                }
                Err(e) if e.is_cancelled() => {
                    a += 1;
                    if !(i % 6 == 2 || i % 30 == 0) {
                        fault(format!("kind {i} cancelled"));
                    }
                }
                Err(_) => {
                    p += 1;
                    if i % 6 != 3 {
                        fault(format!("kind {i} panicked"));
                    }
                }
            }
        }
    }
    if dropped.load(SeqCst) != spawned {
        fault(format!("dropped {} of {spawned}", dropped.load(SeqCst)));
    }
    if done.load(SeqCst) > c + a || done.load(SeqCst) < c {
        fault(format!("done {} completed {c}", done.load(SeqCst)));
    }
    println!("storm: spawned {spawned} completed {c} aborted {a} panicked {p}");
}

pub(super) async fn timeouts(end: Instant) {
    let early = Arc::new(AtomicU64::new(0));
    let worst = Arc::new(AtomicU64::new(0));
    let lost = Arc::new(AtomicU64::new(0));
    let n = Arc::new(AtomicU64::new(0));
    let mut hs = vec![];
    for k in 0..64u64 {
        let (early, worst, lost, n) = (early.clone(), worst.clone(), lost.clone(), n.clone());
        hs.push(spawn(async move {
            while Instant::now() < end {
                let d = Duration::from_millis(3 + k % 17);
                let t = Instant::now();
                let r = tokio::time::timeout(d, std::future::pending::<()>()).await;
                assert!(r.is_err());
                let e = t.elapsed();
                if e < d {
                    early.fetch_add(1, SeqCst);
                }
                worst.fetch_max((e - d.min(e)).as_micros() as u64, SeqCst);
                // a reply that comes after d, timeout 3 d
                let (tx, rx) = tokio::sync::oneshot::channel();
                spawn(async move {
                    tokio::time::sleep(d).await;
                    let _ = tx.send(());
                });
                match tokio::time::timeout(d * 3 + Duration::from_millis(20), rx).await {
                    Ok(Ok(())) => {}
                    _ => {
                        lost.fetch_add(1, SeqCst);
                    }
                }
                n.fetch_add(1, SeqCst);
                unit(30).await;
            }
        }));
    }
    for h in hs {
        h.await.unwrap();
    }
    if early.load(SeqCst) > 0 {
        fault(format!("timeouts early {}", early.load(SeqCst)));
    }
    println!(
        "timeouts: n {} early {} worst late us {} replies within time that timed out (3d+20ms) {}",
        n.load(SeqCst),
        early.load(SeqCst),
        worst.load(SeqCst),
        lost.load(SeqCst)
    );
}

pub(super) async fn select(end: Instant) {
    use tokio::sync::mpsc;
    let mut hs = vec![];
    for k in 0..32u64 {
        let (tx, mut rx) = mpsc::channel::<u64>(4);
        let sent = Arc::new(AtomicU64::new(0));
        let s2 = sent.clone();
        let prod = spawn(async move {
            let mut i = 0;
            while Instant::now() < end {
                tokio::select! { biased;
                    r = tx.reserve() => { r.unwrap().send(i); i += 1; s2.store(i, SeqCst); unit(3).await; }
                    _ = tokio::time::sleep(Duration::from_micros(50 + k)) => { tokio::task::yield_now().await; }
                }
            }
        });
        hs.push(spawn(async move {
            let mut want = 0; let notify = tokio::sync::Notify::new();
            let mut tm = tokio::time::interval(Duration::from_millis(1));
            loop {
                tokio::select! {
                    m = rx.recv() => match m { None => break, Some(m) => { if m != want { fault(format!("order {m} want {want}")); } want = m + 1; tick(); } },
                    _ = tm.tick() => { andweorc::progress!("tick"); }
                    _ = notify.notified() => unreachable!(),
                    _ = tokio::time::sleep(Duration::from_micros(fastrand::u64(1..400))) => { spin(5); }
                }
            }
            if want != sent.load(SeqCst) { fault(format!("received {want} sent {}", sent.load(SeqCst))); }
            want
        }));
        hs.push(spawn(async move {
            prod.await.unwrap();
            0
        }));
    }
    let mut n = 0;
    for h in hs {
        n += h.await.unwrap();
    }
    println!("select: {n}");
}

pub(super) async fn handoff(end: Instant) {
    // Notify / watch / Semaphore / Mutex / broadcast hand-offs: each lost wake hangs.
    use tokio::sync::*;
    let mut hs = vec![];
    for _ in 0..16 {
        let (a, b) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (a2, b2) = (a.clone(), b.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let st = stop.clone();
        hs.push(spawn(async move {
            while Instant::now() < end {
                a.notify_one();
                b.notified().await;
                unit(1).await;
            }
            st.store(true, SeqCst);
            a.notify_one();
        }));
        hs.push(spawn(async move {
            loop {
                a2.notified().await;
                if stop.load(SeqCst) {
                    break;
                }
                b2.notify_one();
            }
        }));
    }
    for _ in 0..4 {
        let m = Arc::new(Mutex::new(0u64));
        let sem = Arc::new(Semaphore::new(2));
        let tot = Arc::new(AtomicU64::new(0));
        let mut js = vec![];
        for _ in 0..8 {
            let (m, sem, tot) = (m.clone(), sem.clone(), tot.clone());
            js.push(spawn(async move {
                while Instant::now() < end {
                    let _p = sem.acquire().await.unwrap();
                    let mut g = m.lock().await;
                    let v = *g;
                    unit(2).await;
                    *g = v + 1;
                    drop(g);
                    tot.fetch_add(1, SeqCst);
                    let _ = tokio::time::timeout(Duration::from_micros(20), m.lock()).await;
                }
            }));
        }
        hs.push(spawn(async move {
            for j in js {
                j.await.unwrap();
            }
            if *m.lock().await != tot.load(SeqCst) {
                fault("mutex count".into());
            }
        }));
    }
    {
        let (tx, rx) = watch::channel(0u64);
        hs.push(spawn(async move {
            let mut i = 0;
            while Instant::now() < end {
                i += 1;
                tx.send(i).unwrap();
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }));
        for _ in 0..4 {
            let mut rx = rx.clone();
            hs.push(spawn(async move {
                let mut last = 0;
                while rx.changed().await.is_ok() {
                    let v = *rx.borrow_and_update();
                    if v <= last {
                        fault("watch backwards".into());
                    }
                    last = v;
                }
            }));
        }
    }
    {
        let (tx, _) = broadcast::channel(4096);
        for _ in 0..4 {
            let mut rx = tx.subscribe();
            hs.push(spawn(async move {
                let mut w = 0u64;
                loop {
                    match rx.recv().await {
                        Ok(v) => {
                            if v != w {
                                fault(format!("broadcast {v} {w}"));
                            }
                            w = v + 1;
                        }
                        Err(broadcast::error::RecvError::Lagged(n)) => w += n,
                        Err(_) => break,
                    }
                }
            }));
        }
        hs.push(spawn(async move {
            let mut i = 0;
            while Instant::now() < end {
                let _ = tx.send(i);
                i += 1;
                unit(1).await;
                if i % 64 == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }));
    }
    for h in hs {
        h.await.unwrap();
    }
    println!("handoff ok");
}

pub(super) async fn joinset(end: Instant) {
    let dropped = Arc::new(AtomicU64::new(0));
    let mut n = 0;
    while Instant::now() < end {
        let mut js = andweorc::JoinSet::new();
        for i in 0..200u64 {
            let g = CountsDrop(dropped.clone());
            n += 1;
            js.spawn(async move {
                let _g = g;
                if i % 3 == 0 {
                    tokio::time::sleep(Duration::from_micros(i * 10)).await
                }
                unit(1).await;
                i
            });
        }
        for _ in 0..fastrand::usize(0..200) {
            if js.join_next().await.is_none() {
                break;
            }
        }
        match fastrand::u8(0..3) {
            0 => js.abort_all(),
            1 => {
                js.shutdown().await;
            }
            _ => {}
        }
        while let Some(r) = js.join_next().await {
            if r.is_err_and(|e| !e.is_cancelled()) {
                fault("panic".into());
            }
        }
        drop(js);
        if dropped.load(SeqCst) != n {
            // detach drop may be late only when dropped without join
            fault(format!("joinset dropped {} of {n}", dropped.load(SeqCst)));
        }
    }
    println!("joinset {n}");
}

pub(super) async fn block(end: Instant) {
    let mut hs = vec![];
    for k in 0..12u64 {
        hs.push(spawn(async move {
            while Instant::now() < end {
                let v = tokio::task::block_in_place(|| {
                    spin(20);
                    tokio::runtime::Handle::current().block_on(async {
                        unit(5).await;
                        tokio::task::block_in_place(|| {
                            tokio::runtime::Handle::current().block_on(async {
                                tokio::time::sleep(Duration::from_micros(100 + k)).await;
                                andweorc::spawn_blocking(move || {
                                    spin(10);
                                    k
                                })
                                .await
                                .unwrap()
                            })
                        })
                    })
                });
                if v != k {
                    fault("block".into());
                }
                tick();
            }
        }));
    }
    for h in hs {
        h.await.unwrap();
    }
    println!("block ok");
}
