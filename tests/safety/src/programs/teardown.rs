//! A thread-local connection that is closed, with a `block_on`, as its thread ends.

use super::{current_thread, session};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

struct Client(RefCell<Option<Arc<Runtime>>>);

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.borrow_mut().take() {
            runtime.block_on(async {
                let (send, receive) = tokio::sync::oneshot::channel();
                andweorc::spawn(async move { send.send(()) });
                tokio::time::sleep(Duration::from_millis(1)).await;
                receive.await.expect("it is sent");
            });
            println!("closed=1");
        }
    }
}

thread_local! {
    static CLIENT: Client = const { Client(RefCell::new(None)) };
}

pub fn main() {
    andweorc::subscriber().init();
    let _session = session();
    std::thread::sleep(Duration::from_millis(100));
    let thread = std::thread::spawn(|| {
        let runtime = Arc::new(current_thread());
        drop(runtime.enter());
        CLIENT.with(|client| *client.0.borrow_mut() = Some(Arc::clone(&runtime)));
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(2)).await });
    });
    assert!(thread.join().is_ok());
    std::process::exit(0)
}
