//! An executor of the async book's kind, whose waker panics once the executor is gone, beside a
//! tokio runtime without hooks. How many wakes panicked on other threads than those that woke is
//! printed, and how late a wake of the rest of the program comes.

use super::{arg, report, session, works};
use andweorc::Profile;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

type Part = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Task {
    future: Mutex<Option<Part>>,
    queue: mpsc::SyncSender<Arc<Task>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.clone();
        queue.try_send(self).expect("the executor is gone");
    }
}

impl Task {
    fn poll(self: &Arc<Self>) {
        let mut future = self.future.lock().expect("nobody panics with it");
        if let Some(mut part) = future.take()
            && part.as_mut().poll(&mut Context::from_waker(&Waker::from(self.clone()))).is_pending()
        {
            *future = Some(part);
        }
    }
}

static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

pub fn main() {
    andweorc::subscriber().init();
    let _session = session();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("runtime");
    let _context = runtime.enter();
    andweorc::spawn(works());
    std::panic::set_hook(Box::new(|_| {
        if std::thread::current().name() != Some("answers") {
            ELSEWHERE.fetch_add(1, SeqCst);
        }
    }));
    let end = Instant::now() + Duration::from_secs(arg(0, 3));
    while Instant::now() < end {
        let (queue, ready) = mpsc::sync_channel(10);
        let (send, receive) = tokio::sync::oneshot::channel::<()>();
        let part = async { receive.await.unwrap_or_default() }.profiled("book");
        let task = Arc::new(Task { future: Mutex::new(Some(Box::pin(part))), queue });
        task.poll();
        std::thread::sleep(Duration::from_millis(5));
        // Another thread answers, and the executor ends right after.
        let answers = std::thread::Builder::new().name("answers".into());
        answers.spawn(move || send.send(()).ok()).expect("a thread").join().ok();
        drop(ready);
    }
    // Whether the rest of the program still gets its wakes.
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel::<Instant>();
    let (back, answers) = mpsc::channel();
    andweorc::spawn(async move {
        while let Some(sent) = receive.recv().await {
            back.send(sent.elapsed()).expect("main waits");
        }
    });
    let mut worst = Duration::ZERO;
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(5));
        send.send(Instant::now()).expect("the task receives");
        worst = worst
            .max(answers.recv_timeout(Duration::from_secs(5)).unwrap_or(Duration::from_secs(5)));
    }
    report(format!("elsewhere={} worst_ms={}", ELSEWHERE.load(SeqCst), worst.as_secs_f64() * 1e3))
}
