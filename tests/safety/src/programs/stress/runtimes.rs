//! Runtimes and threads that come and go.

use super::*;

pub(super) fn runtimes(end: Instant) {
    // 50+ runtimes built and dropped, in mid-experiment, by drop / shutdown_timeout /
    // shutdown_background
    let keep = std::thread::spawn(move || {
        let rt = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .enable_profiling()
            .build()
            .unwrap();
        rt.block_on(async move {
            let mut hs = vec![];
            for _ in 0..8 {
                hs.push(spawn(async move {
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
        let rt = b.worker_threads(1 + n % 4).enable_all().enable_profiling().build().unwrap();
        rt.block_on(async {
            for i in 0..100u64 {
                made += 1;
                let g = CountsDrop(dropped.clone());
                spawn(async move {
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

pub(super) fn local(end: Instant) {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().enable_profiling().build().unwrap();
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

pub(super) fn threads(end: Instant) {
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
                                        .enable_profiling()
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

pub(super) fn small_stacks(end: Instant, kb: usize) {
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(kb * 1024)
        .enable_all()
        .enable_profiling()
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
            hs.push(spawn(async move {
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
