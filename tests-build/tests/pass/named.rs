#[andweorc::main(flavor = "current_thread", name = "shop")]
async fn main() {
    assert_eq!(tokio::runtime::Handle::current().name(), Some("shop"));
}
