//! All that a program may do with tasks, threads, runtimes, processes and signals, again and again: nothing may hang, and nothing be lost.

use andweorc::runtime::BuilderExt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

static PROGRESS: AtomicU64 = AtomicU64::new(0);
static FAULTS: AtomicU64 = AtomicU64::new(0);
static RAW: AtomicBool = AtomicBool::new(false);
fn fault(s: String) {
    if FAULTS.fetch_add(1, SeqCst) < 20 {
        eprintln!("FAULT: {s}");
    }
}
fn tick() {
    PROGRESS.fetch_add(1, SeqCst);
}
#[track_caller]
fn sp<F>(f: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if RAW.load(SeqCst) { tokio::spawn(f) } else { andweorc::spawn(f) }
}
fn spin(us: u64) {
    let t = Instant::now();
    while t.elapsed() < Duration::from_micros(us) {
        std::hint::spin_loop()
    }
}
fn watchdog(limit: u64) {
    std::thread::spawn(move || {
        let mut last = 0;
        let mut since = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(250));
            let p = PROGRESS.load(SeqCst);
            if p != last {
                last = p;
                since = Instant::now();
            }
            if since.elapsed() > Duration::from_secs(limit) {
                eprintln!("FAULT: HANG: no progress for {limit} s at {p}");
                let pid = std::process::id();
                let _ = std::process::Command::new("gdb")
                    .args(["-p", &pid.to_string(), "-batch", "-ex", "thread apply all bt 14"])
                    .status();
                std::process::abort();
            }
        }
    });
}
struct G(Arc<AtomicU64>);
impl Drop for G {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[tracing::instrument(skip_all)]
async fn unit(us: u64) {
    spin(us);
    tokio::task::yield_now().await;
    tick();
    andweorc::progress!("unit");
}

async fn storm(end: Instant) {
    let (dropped, mut spawned) = (Arc::new(AtomicU64::new(0)), 0u64);
    let done = Arc::new(AtomicU64::new(0));
    let (mut c, mut a, mut p) = (0u64, 0u64, 0u64);
    while Instant::now() < end {
        let mut hs = Vec::new();
        for i in 0..300u64 {
            let g = G(dropped.clone());
            spawned += 1;
            let done = done.clone();
            let h = match i % 6 {
                0 => sp(async move {
                    let _g = g;
                    unit(2).await;
                    done.fetch_add(1, SeqCst);
                }),
                1 => sp(async move {
                    let _g = g;
                    tokio::time::sleep(Duration::from_micros(300)).await;
                    unit(1).await;
                    done.fetch_add(1, SeqCst);
                }),
                2 => sp(async move {
                    let _g = g;
                    std::future::pending::<()>().await;
                }),
                3 => sp(async move {
                    let _g = g;
                    tokio::task::yield_now().await;
                    std::panic::resume_unwind(Box::new(7))
                }),
                4 => sp(async move {
                    let _g = g;
                    andweorc::task::yield_now().await;
                    unit(0).await;
                    done.fetch_add(1, SeqCst);
                }),
                _ => sp(async move {
                    let _g = g;
                    let (t, r) = tokio::sync::oneshot::channel();
                    sp(async move {
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

async fn timeouts(end: Instant) {
    let early = Arc::new(AtomicU64::new(0));
    let worst = Arc::new(AtomicU64::new(0));
    let lost = Arc::new(AtomicU64::new(0));
    let n = Arc::new(AtomicU64::new(0));
    let mut hs = vec![];
    for k in 0..64u64 {
        let (early, worst, lost, n) = (early.clone(), worst.clone(), lost.clone(), n.clone());
        hs.push(sp(async move {
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
                sp(async move {
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

async fn select(end: Instant) {
    use tokio::sync::mpsc;
    let mut hs = vec![];
    for k in 0..32u64 {
        let (tx, mut rx) = mpsc::channel::<u64>(4);
        let sent = Arc::new(AtomicU64::new(0));
        let s2 = sent.clone();
        let prod = sp(async move {
            let mut i = 0;
            while Instant::now() < end {
                tokio::select! { biased;
                    r = tx.reserve() => { r.unwrap().send(i); i += 1; s2.store(i, SeqCst); unit(3).await; }
                    _ = tokio::time::sleep(Duration::from_micros(50 + k)) => { tokio::task::yield_now().await; }
                }
            }
        });
        hs.push(sp(async move {
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
        hs.push(sp(async move {
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

async fn handoff(end: Instant) {
    // Notify / watch / Semaphore / Mutex / broadcast hand-offs: each lost wake hangs.
    use tokio::sync::*;
    let mut hs = vec![];
    for _ in 0..16 {
        let (a, b) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (a2, b2) = (a.clone(), b.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let st = stop.clone();
        hs.push(sp(async move {
            while Instant::now() < end {
                a.notify_one();
                b.notified().await;
                unit(1).await;
            }
            st.store(true, SeqCst);
            a.notify_one();
        }));
        hs.push(sp(async move {
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
            js.push(sp(async move {
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
        hs.push(sp(async move {
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
        hs.push(sp(async move {
            let mut i = 0;
            while Instant::now() < end {
                i += 1;
                tx.send(i).unwrap();
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }));
        for _ in 0..4 {
            let mut rx = rx.clone();
            hs.push(sp(async move {
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
            hs.push(sp(async move {
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
        hs.push(sp(async move {
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

async fn joinset(end: Instant) {
    let dropped = Arc::new(AtomicU64::new(0));
    let mut n = 0;
    while Instant::now() < end {
        let mut js = andweorc::JoinSet::new();
        for i in 0..200u64 {
            let g = G(dropped.clone());
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
        let mut c = 0;
        while let Some(r) = js.join_next().await {
            if r.is_err_and(|e| !e.is_cancelled()) {
                fault("panic".into());
            }
            c += 1;
        }
        let _ = c;
        drop(js);
        if dropped.load(SeqCst) != n {
            // detach drop may be late only when dropped without join
            fault(format!("joinset dropped {} of {n}", dropped.load(SeqCst)));
        }
    }
    println!("joinset {n}");
}

async fn block(end: Instant) {
    let mut hs = vec![];
    for k in 0..12u64 {
        hs.push(sp(async move {
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

fn runtimes(end: Instant) {
    // 50+ runtimes built and dropped, in mid-experiment, by drop / shutdown_timeout / shutdown_background
    let keep = std::thread::spawn(move || {
        let rt = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .andweorc()
            .build()
            .unwrap();
        rt.block_on(async move {
            let mut hs = vec![];
            for _ in 0..8 {
                hs.push(sp(async move {
                    while Instant::now() < end {
                        unit(100).await;
                        tokio::time::sleep(Duration::from_micros(300)).await;
                    }
                }));
            }
            for h in hs {
                h.await.unwrap();
            }
        });
    });
    let mut n = 0;
    let mut slow = Duration::ZERO;
    while Instant::now() < end {
        let dropped = Arc::new(AtomicU64::new(0));
        let mut made = 0u64;
        let mut b = if n % 3 == 0 {
            tokio::runtime::Builder::new_current_thread()
        } else {
            tokio::runtime::Builder::new_multi_thread()
        };
        let rt = b.worker_threads(1 + n % 4).enable_all().andweorc().build().unwrap();
        rt.block_on(async {
            for i in 0..100u64 {
                made += 1;
                let g = G(dropped.clone());
                sp(async move {
                    let _g = g;
                    loop {
                        unit(i % 7).await;
                        tokio::time::sleep(Duration::from_micros(i * 37)).await;
                    }
                });
            }
            andweorc::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)));
            tokio::time::sleep(Duration::from_millis(10)).await;
        });
        let t = Instant::now();
        match n % 3 {
            0 => drop(rt),
            1 => rt.shutdown_timeout(Duration::from_millis(200)),
            _ => rt.shutdown_background(),
        }
        slow = slow.max(t.elapsed());
        if n % 3 != 2 && dropped.load(SeqCst) != made {
            fault(format!("runtime {n}: dropped {} of {made}", dropped.load(SeqCst)));
        }
        n += 1;
    }
    keep.join().unwrap();
    println!(
        "runtimes {n}, slowest drop {slow:?}, threads now {}",
        std::fs::read_dir("/proc/self/task").unwrap().count()
    );
}

fn local(end: Instant) {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().andweorc().build().unwrap();
    let ls = tokio::task::LocalSet::new();
    ls.block_on(&rt, async move {
        let mut n = 0u64;
        while Instant::now() < end {
            let rc = std::rc::Rc::new(std::cell::Cell::new(0));
            let mut hs = vec![];
            for _ in 0..50 {
                let rc = rc.clone();
                hs.push(andweorc::task::spawn_local(async move {
                    unit(3).await;
                    tokio::time::sleep(Duration::from_micros(200)).await;
                    rc.set(rc.get() + 1);
                }));
            }
            for (i, h) in hs.into_iter().enumerate() {
                if i % 10 == 9 {
                    h.abort();
                    let _ = h.await;
                } else {
                    h.await.unwrap();
                }
            }
            if rc.get() < 45 {
                fault("local".into());
            }
            n += 1;
        }
        println!("local {n}");
    });
}

fn threads(end: Instant) {
    // thousands of short threads, TLS destructors that trace and spawn
    struct T;
    impl Drop for T {
        fn drop(&mut self) {
            let s = tracing::info_span!("in tls destructor");
            let _e = s.enter();
            andweorc::progress!("tls");
            spin(2);
            tick();
        }
    }
    thread_local! { static TL: T = const { T }; }
    struct U(std::cell::RefCell<Option<tokio::runtime::Runtime>>);
    impl Drop for U {
        fn drop(&mut self) {
            if let Some(rt) = self.0.borrow_mut().take() {
                rt.block_on(async {
                    unit(1).await;
                });
            }
        }
    }
    thread_local! { static UL: U = const { U(std::cell::RefCell::new(None)) }; }
    let mut n = 0u64;
    while Instant::now() < end {
        let hs: Vec<_> = (0..40)
            .map(|i| {
                std::thread::Builder::new()
                    .stack_size(64 * 1024)
                    .spawn(move || {
                        if i % 2 == 0 {
                            TL.with(|_| ());
                        }
                        if i % 8 == 0 {
                            UL.with(|u| {
                                *u.0.borrow_mut() = Some(
                                    tokio::runtime::Builder::new_current_thread()
                                        .enable_all()
                                        .andweorc()
                                        .build()
                                        .unwrap(),
                                )
                            });
                        }
                        {
                            let s = tracing::info_span!("short thread");
                            let _e = s.enter();
                            spin(5);
                        }
                        if i % 4 == 1 {
                            andweorc::start_profiling().unwrap_or_default();
                            andweorc::progress!("short");
                            spin(20);
                        }
                        if i % 2 == 1 {
                            TL.with(|_| ());
                        }
                    })
                    .unwrap()
            })
            .collect();
        n += hs.len() as u64;
        for h in hs {
            h.join().unwrap();
        }
    }
    println!(
        "threads {n}; rss {}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .find(|l| l.starts_with("VmRSS"))
            .unwrap()
    );
}

fn small_stacks(end: Instant, kb: usize) {
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(kb * 1024)
        .enable_all()
        .andweorc()
        .build()
        .unwrap();
    fn deep(n: u32) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            if n == 0 {
                unit(20).await;
                0
            } else {
                1 + deep(n - 1).await
            }
        })
    }
    rt.block_on(async move {
        let mut hs = vec![];
        for _ in 0..8 {
            hs.push(sp(async move {
                while Instant::now() < end {
                    deep(20).await;
                    tokio::time::sleep(Duration::from_micros(100)).await;
                    spin(3000);
                }
            }));
        }
        for h in hs {
            h.await.unwrap();
        }
    });
    println!("small stacks {kb} ok");
}

async fn hog(end: Instant) {
    // a task that never yields
    let h = sp(async move {
        let s = tracing::info_span!("hog");
        let _e = s.enter();
        while Instant::now() < end {
            spin(1000);
        }
    });
    while Instant::now() < end {
        let t = Instant::now();
        tokio::time::sleep(Duration::from_millis(5)).await;
        unit(50).await;
        let e = t.elapsed();
        if e > Duration::from_secs(2) {
            fault(format!("5 ms sleep took {e:?}"));
        }
    }
    h.await.unwrap();
    println!("hog ok");
}

async fn sockets(end: Instant, n: usize) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let l = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = l.local_addr().unwrap();
    sp(async move {
        loop {
            match l.accept().await {
                Ok((mut s, _)) => {
                    sp(async move {
                        let mut b = [0; 8];
                        while s.read_exact(&mut b).await.is_ok() {
                            unit(1).await;
                            if s.write_all(&b).await.is_err() {
                                break;
                            }
                        }
                    });
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    });
    let (ok, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut hs = vec![];
    for _ in 0..n {
        let (ok, failed) = (ok.clone(), failed.clone());
        hs.push(sp(async move {
            let Ok(mut s) = tokio::net::TcpStream::connect(at).await else {
                failed.fetch_add(1, SeqCst);
                return;
            };
            let mut i = 0u64;
            while Instant::now() < end {
                i += 1;
                if s.write_all(&i.to_le_bytes()).await.is_err() {
                    failed.fetch_add(1, SeqCst);
                    return;
                }
                let mut b = [0; 8];
                match tokio::time::timeout(Duration::from_secs(20), s.read_exact(&mut b)).await {
                    Ok(Ok(_)) => {
                        if u64::from_le_bytes(b) != i {
                            fault("echo".into());
                        }
                        ok.fetch_add(1, SeqCst);
                        tick();
                    }
                    Ok(Err(_)) => {
                        failed.fetch_add(1, SeqCst);
                        return;
                    }
                    Err(_) => {
                        fault("echo answer took 20 s".into());
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..200))).await;
            }
        }));
    }
    for h in hs {
        h.await.unwrap();
    }
    println!("sockets {n}: echoes {} failed connections {}", ok.load(SeqCst), failed.load(SeqCst));
}

async fn processes(end: Instant) {
    let mut n = 0u64;
    let mut hs = vec![];
    for _ in 0..4 {
        hs.push(sp(async move {
            let mut n = 0;
            while Instant::now() < end {
                let o = tokio::process::Command::new("/bin/sh")
                    .args(["-c", "echo $((6*7)); cat /dev/null"])
                    .env_remove("ANDWEORC_ENABLED")
                    .output()
                    .await
                    .unwrap();
                if o.stdout != b"42\n" || !o.status.success() {
                    fault(format!("child {o:?}"));
                }
                n += 1;
                unit(50).await;
                // raw fork
                if n % 5 == 0 {
                    let pid = unsafe { libc::fork() };
                    if pid == 0 {
                        unsafe {
                            for _ in 0..100 {
                                libc::getppid();
                            }
                            libc::_exit(3)
                        }
                    }
                    let mut st = 0;
                    let t = Instant::now();
                    loop {
                        let r = unsafe { libc::waitpid(pid, &mut st, libc::WNOHANG) };
                        if r == pid {
                            break;
                        }
                        if r < 0 {
                            break;
                        }
                        if t.elapsed() > Duration::from_secs(5) {
                            fault("forked child hangs".into());
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            n
        }));
    }
    for h in hs {
        n += h.await.unwrap();
    }
    println!("processes {n}");
}

async fn signals(end: Instant) {
    // the program's own handlers of SIGURG, SIGPROF, SIGALRM, through signal-hook and tokio::signal, and an itimer
    let urg = Arc::new(AtomicU64::new(0));
    let u = urg.clone();
    unsafe {
        signal_hook::low_level::register(libc::SIGURG, move || {
            u.fetch_add(1, SeqCst);
        })
        .unwrap();
    }
    let mut al = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::alarm()).unwrap();
    unsafe {
        let it = libc::itimerval {
            it_interval: libc::timeval { tv_sec: 0, tv_usec: 2000 },
            it_value: libc::timeval { tv_sec: 0, tv_usec: 2000 },
        };
        libc::setitimer(libc::ITIMER_REAL, &it, std::ptr::null_mut());
    }
    let alarms = sp(async move {
        let mut n = 0u64;
        while Instant::now() < end {
            if tokio::time::timeout(Duration::from_secs(2), al.recv()).await.is_err() {
                fault("no SIGALRM for 2 s".into());
            }
            n += 1;
        }
        n
    });
    let mut sent = 0;
    while Instant::now() < end {
        unsafe {
            libc::raise(libc::SIGURG);
        }
        sent += 1;
        unit(100).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!(
        "signals: SIGURG sent {sent} seen {} alarms {}",
        urg.load(SeqCst),
        alarms.await.unwrap()
    );
    if urg.load(SeqCst) < sent {
        fault("SIGURG lost".into());
    }
}

fn deep_drop(end: Instant) {
    struct P;
    impl Drop for P {
        fn drop(&mut self) {
            panic!("in drop")
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .andweorc()
        .build()
        .unwrap();
    rt.block_on(async move {
        let mut n = 0;
        while Instant::now() < end {
            let h = sp(async {
                let _p = P;
                unit(1).await;
            });
            if !h.await.unwrap_err().is_panic() {
                fault("drop panic not told".into());
            }
            let h = sp(async {
                let _p = P;
                std::future::pending::<()>().await
            });
            tokio::task::yield_now().await;
            h.abort();
            let e = h.await.unwrap_err();
            if !e.is_panic() && !e.is_cancelled() {
                fault("abort".into());
            }
            n += 1;
        }
        println!("drop panics {n}");
    });
}

async fn dynamic_names(end: Instant) {
    use andweorc::Profile;
    let mut n = 0u64;
    let t0 = Instant::now();
    while Instant::now() < end {
        for _ in 0..1000 {
            n += 1;
            async {
                tick();
            }
            .profiled(format!("request {n}"))
            .await;
        }
        tokio::task::yield_now().await;
        if n.is_multiple_of(100_000) {
            println!(
                "{n} names after {:?}: {}",
                t0.elapsed(),
                std::fs::read_to_string("/proc/self/status")
                    .unwrap()
                    .lines()
                    .find(|l| l.starts_with("VmRSS"))
                    .unwrap()
            );
        }
        if n >= 400_000 {
            break;
        }
    }
    println!("names {n}");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .andweorc()
        .build()
        .unwrap()
}

pub fn main() {
    let a: Vec<String> = std::env::args().skip(2).collect();
    let case = a[1].clone();
    let secs: u64 = a[2].parse().unwrap();
    RAW.store(a.get(3).is_some_and(|m| m == "raw"), SeqCst);
    if a.get(4).is_some_and(|m| m == "nosub") {
    } else {
        andweorc::subscriber().init();
    }
    watchdog(15);
    let settings = andweorc::Settings::from_env().unwrap();
    let session = if std::env::var_os("ANDWEORC_ENABLED").is_some() {
        Some(andweorc::Session::start(settings).expect("session"))
    } else {
        None
    };
    let end = Instant::now() + Duration::from_secs(secs);
    let t = Instant::now();
    match case.as_str() {
        "storm" => runtime().block_on(async move { sp(storm(end)).await.unwrap() }),
        "timeouts" => runtime().block_on(async move { sp(timeouts(end)).await.unwrap() }),
        "select" => runtime().block_on(async move { sp(select(end)).await.unwrap() }),
        "handoff" => runtime().block_on(async move { sp(handoff(end)).await.unwrap() }),
        "joinset" => runtime().block_on(async move { sp(joinset(end)).await.unwrap() }),
        "block" => runtime().block_on(async move { sp(block(end)).await.unwrap() }),
        "runtimes" => runtimes(end),
        "local" => local(end),
        "threads" => threads(end),
        "small64" => small_stacks(end, 64),
        "small32" => small_stacks(end, 32),
        "small16" => small_stacks(end, 16),
        "hog" => runtime().block_on(async move { sp(hog(end)).await.unwrap() }),
        "sockets" => runtime().block_on(async move {
            sp(sockets(end, std::env::var("N").map_or(1000, |n| n.parse().unwrap()))).await.unwrap()
        }),
        "processes" => runtime().block_on(async move { sp(processes(end)).await.unwrap() }),
        "signals" => runtime().block_on(async move { sp(signals(end)).await.unwrap() }),
        "drops" => deep_drop(end),
        "names" => runtime().block_on(async move { sp(dynamic_names(end)).await.unwrap() }),
        "exit" => runtime().block_on(async move {
            for _ in 0..8 {
                sp(async {
                    loop {
                        unit(50).await;
                        tokio::time::sleep(Duration::from_micros(500)).await
                    }
                });
            }
            tokio::time::sleep(Duration::from_secs(secs)).await;
            std::process::exit(9)
        }),
        "abort" => runtime().block_on(async move {
            for _ in 0..8 {
                sp(async {
                    loop {
                        unit(50).await;
                        tokio::time::sleep(Duration::from_micros(500)).await
                    }
                });
            }
            tokio::time::sleep(Duration::from_secs(secs)).await;
            std::process::abort()
        }),
        "doublepanic" => runtime().block_on(async move {
            struct P;
            impl Drop for P {
                fn drop(&mut self) {
                    panic!("second")
                }
            }
            for _ in 0..8 {
                sp(async {
                    loop {
                        unit(50).await;
                        tokio::time::sleep(Duration::from_micros(500)).await
                    }
                });
            }
            tokio::time::sleep(Duration::from_secs(secs)).await;
            let _ = sp(async {
                let _p = P;
                panic!("first")
            })
            .await;
        }),
        "main_thread_exit" => {
            runtime().block_on(async move {
                for _ in 0..8 {
                    sp(async {
                        loop {
                            unit(50).await
                        }
                    });
                }
                tokio::time::sleep(Duration::from_secs(secs)).await;
            });
        }
        other => panic!("{other}"),
    }
    println!(
        "{case} took {:?}, progress {}, faults {}",
        t.elapsed(),
        PROGRESS.load(SeqCst),
        FAULTS.load(SeqCst)
    );
    if let Some(s) = session {
        let t = Instant::now();
        let o = s.finish("end");
        let r = o.report().to_string();
        println!(
            "finish took {:?}; report {} lines; first: {}",
            t.elapsed(),
            r.lines().count(),
            r.lines().take(12).collect::<Vec<_>>().join("\n    ")
        );
    }
    std::process::exit(if FAULTS.load(SeqCst) > 0 { 1 } else { 0 });
}
