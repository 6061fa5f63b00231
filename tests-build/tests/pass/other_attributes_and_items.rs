//! Other attributes and items around the attribute stay.

mod service {
    /// Documented, generic, and called with arguments.
    #[andweorc::main(flavor = "current_thread")]
    #[must_use]
    pub async fn add<T: std::ops::Add<Output = T>>(a: T, mut b: T, more: T) -> T {
        b = b + more;
        tokio::task::yield_now().await;
        a + b
    }
}

fn main() {
    assert_eq!(service::add(1, 2, 3), 6);
}
