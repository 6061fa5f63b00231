//! Input from outside is held where it comes to a task that nobody profiles.

use andweorc_core::clock;
use andweorc_core::engine::Rules;
use andweorc_core::thread::{self, ledger};
use andweorc_core::time::{Nanos, Real, Speedup};
use andweorc_tokio::Profile;
use andweorc_tokio::io::Outside;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::Duration;
use tests_support::wakes::Watched;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The ledger is that of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// An experiment in which nobody is in the target, until it is dropped.
struct Experiment(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Experiment {
    fn begin() -> Experiment {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        thread::enable();
        ledger().begin(Speedup::new(0.5).expect("it is a fraction"), clock::now());
        Experiment(alone)
    }
}

impl Drop for Experiment {
    fn drop(&mut self) {
        ledger().end(clock::now());
    }
}

/// Lets D grow by 5 ms while 10 pass.
fn delay() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let account = ledger().open(clock::now()).expect("accounts are free");
            ledger().enter(account, clock::now());
            sleep(Duration::from_millis(10));
            ledger().exit(account, clock::now(), Nanos(i64::MAX));
            ledger().close(account, clock::now());
        });
    });
}

/// A socket: nothing comes before `comes`.
#[derive(Default)]
struct Socket {
    reader: Option<Waker>,
    is_readable: bool,
}

impl Socket {
    /// Something comes, as the driver notices now. Returns when.
    fn comes(&mut self) -> Real {
        self.is_readable = true;
        let now = clock::now();
        self.reader.take().expect("somebody reads").wake();
        now
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_readable {
            buffer.put_slice(b"!");
            return Poll::Ready(Ok(()));
        }
        self.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buffer.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn read(stream: &mut Outside<Socket>, cx: &mut Context<'_>) -> bool {
    let mut byte = [0];
    Pin::new(stream).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_ready()
}

fn write(stream: &mut Outside<Socket>, cx: &mut Context<'_>) {
    assert!(Pin::new(stream).poll_write(cx, b"?").is_ready());
}

#[test]
fn input_is_held_by_the_delay_that_grew_during_its_wait() {
    let _experiment = Experiment::begin();
    let Watched { waker, woken: told, .. } = &Watched::spawn();
    let mut context = Context::from_waker(waker);
    let mut stream = Outside::new(Socket::default());
    let taken = ledger().global_delay(clock::now());
    assert!(!read(&mut stream, &mut context));
    delay();
    let came = stream.get_mut().comes();
    let woken = told.recv().expect("it is woken");
    assert!(ledger().time_until_due(came.less(taken), woken) <= Rules::SHIPPED.min_hold);
    assert!(read(&mut stream, &mut context));
}

#[test]
fn read_before_the_data_is_due_finds_nothing() {
    let _experiment = Experiment::begin();
    let Watched { waker, woken: told, .. } = &Watched::spawn();
    let mut context = Context::from_waker(waker);
    let mut stream = Outside::new(Socket::default());
    let taken = ledger().global_delay(clock::now());
    assert!(!read(&mut stream, &mut context));
    delay();
    let came = stream.get_mut().comes();
    // Whatever else its task waits for.
    while !read(&mut stream, &mut context) {
        told.recv().expect("it is woken when there is something to read");
    }
    assert!(ledger().time_until_due(came.less(taken), clock::now()) <= Rules::SHIPPED.min_hold);
}

#[test]
fn delay_before_the_question_does_not_hold_the_answer() {
    let _experiment = Experiment::begin();
    let Watched { waker, woken: told, .. } = &Watched::spawn();
    let mut context = Context::from_waker(waker);
    let mut stream = Outside::new(Socket::default());
    assert!(!read(&mut stream, &mut context));
    delay();
    write(&mut stream, &mut context);
    stream.get_mut().comes();
    // The answer is not held: what is read now would be too early otherwise.
    assert!(read(&mut stream, &mut context));
    told.recv().expect("it is woken");
}

#[test]
fn input_after_the_first_of_a_request_is_not_held() {
    let _experiment = Experiment::begin();
    let Watched { waker, woken: told, .. } = &Watched::spawn();
    let mut context = Context::from_waker(waker);
    let mut stream = Outside::new(Socket::default());
    assert!(!read(&mut stream, &mut context));
    stream.get_mut().comes();
    assert!(read(&mut stream, &mut context));
    told.recv().expect("it is woken");
    // Whoever handles the request waits for the rest, and is held for it.
    stream.get_mut().is_readable = false;
    assert!(!read(&mut stream, &mut context));
    delay();
    stream.get_mut().comes();
    assert!(read(&mut stream, &mut context));
    told.recv().expect("it is woken");
    // The next request is held again.
    stream.get_mut().is_readable = false;
    let taken = ledger().global_delay(clock::now());
    write(&mut stream, &mut context);
    delay();
    // Found empty once more, it still waits since then.
    assert!(!read(&mut stream, &mut context));
    let came = stream.get_mut().comes();
    let woken = told.recv().expect("it is woken");
    assert!(ledger().time_until_due(came.less(taken), woken) <= Rules::SHIPPED.min_hold);
}

#[test]
fn a_stream_that_moves_to_another_task_wakes_that_one() {
    let _experiment = Experiment::begin();
    let Watched { waker: second, woken: told, .. } = &Watched::spawn();
    let mut stream = Outside::new(Socket::default());
    let taken = ledger().global_delay(clock::now());
    assert!(!read(&mut stream, &mut Context::from_waker(Waker::noop())));
    delay();
    let came = stream.get_mut().comes();
    let mut context = Context::from_waker(second);
    while !read(&mut stream, &mut context) {
        told.recv().expect("it is woken when there is something to read");
    }
    assert!(ledger().time_until_due(came.less(taken), clock::now()) <= Rules::SHIPPED.min_hold);
}

#[test]
fn in_a_profiled_task_the_waker_is_that_of_the_task() {
    thread::enable();
    let mut stream = Outside::new(Socket::default());
    let mut task = pin!(
        poll_fn(|context| {
            assert!(!read(&mut stream, context));
            let reader = stream.get_ref().reader.as_ref().expect("somebody reads");
            assert!(reader.will_wake(context.waker()));
            Poll::Ready(())
        })
        .profiled("reads")
    );
    assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}
