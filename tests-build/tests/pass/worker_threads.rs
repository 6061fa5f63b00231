#[andweorc::main(worker_threads = 3)]
async fn main() {
    assert_eq!(tokio::runtime::Handle::current().metrics().num_workers(), 3);
}
