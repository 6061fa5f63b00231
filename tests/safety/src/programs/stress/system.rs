//! The system around the tasks: processors, sockets, processes, signals, deep drops.

use super::*;

pub(super) async fn hog(end: Instant) {
    // a task that never yields
    let h = spawn(async move {
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

pub(super) async fn sockets(end: Instant, n: usize) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let l = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = l.local_addr().unwrap();
    spawn(async move {
        loop {
            match l.accept().await {
                Ok((mut s, _)) => {
                    spawn(async move {
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
        hs.push(spawn(async move {
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

pub(super) async fn processes(end: Instant) {
    let mut n = 0u64;
    let mut hs = vec![];
    for _ in 0..4 {
        hs.push(spawn(async move {
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
                if n % 5 == 0 {
                    forks().await;
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

/// A child of fork makes system calls, and ends.
async fn forks() {
    // SAFETY: the child calls nothing but what may be called in a child of a program with threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: both take plain numbers or nothing.
        unsafe {
            for _ in 0..100 {
                libc::getppid();
            }
            libc::_exit(3)
        }
    }
    let began = Instant::now();
    // SAFETY: a null pointer is allowed: nobody asks for the status.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) } == 0 {
        if began.elapsed() > Duration::from_secs(5) {
            fault("forked child hangs".into());
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(super) async fn signals(end: Instant) {
    // the program's own handlers of SIGURG, SIGPROF, SIGALRM, through signal-hook and
    // tokio::signal, and an itimer
    let urg = Arc::new(AtomicU64::new(0));
    let u = urg.clone();
    // SAFETY: the handler only adds to an atomic.
    unsafe {
        signal_hook::low_level::register(libc::SIGURG, move || {
            u.fetch_add(1, SeqCst);
        })
        .unwrap();
    }
    let mut al = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::alarm()).unwrap();
    // SAFETY: `it` is valid, and a null pointer is allowed for the old value.
    unsafe {
        let it = libc::itimerval {
            it_interval: libc::timeval { tv_sec: 0, tv_usec: 2000 },
            it_value: libc::timeval { tv_sec: 0, tv_usec: 2000 },
        };
        libc::setitimer(libc::ITIMER_REAL, &it, std::ptr::null_mut());
    }
    let alarms = spawn(async move {
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
        // SAFETY: takes a plain number.
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

pub(super) fn deep_drop(end: Instant) {
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
        .enable_profiling()
        .build()
        .unwrap();
    rt.block_on(async move {
        let mut n = 0;
        while Instant::now() < end {
            let h = spawn(async {
                let _p = P;
                unit(1).await;
            });
            if !h.await.unwrap_err().is_panic() {
                fault("drop panic not told".into());
            }
            let h = spawn(async {
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
