use andweorc as renamed;

mod inner {
    pub mod deeper {
        pub use andweorc as profiler;
    }
}

#[inner::deeper::profiler::main(
    crate = "crate::inner::deeper::profiler",
    flavor = "current_thread"
)]
async fn one() -> u32 {
    1
}

#[renamed::main(flavor = "multi_thread", crate = "renamed", worker_threads = 2)]
async fn main() {
    assert_eq!(tokio::runtime::Handle::current().metrics().num_workers(), 2);
    let started = std::thread::spawn(one).join();
    assert_eq!(started.unwrap(), 1);
}
