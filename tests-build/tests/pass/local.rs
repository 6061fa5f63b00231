use std::rc::Rc;

#[andweorc::main(flavor = "local")]
async fn main() {
    // Neither is `Send`.
    let counted = Rc::new(1);
    let task = tokio::task::spawn_local({
        let counted = Rc::clone(&counted);
        async move { *counted }
    });
    assert_eq!(task.await.unwrap(), *counted);
    let named = andweorc::spawn(async { 2 });
    assert_eq!(named.await.unwrap(), 2);
}
