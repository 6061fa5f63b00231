//! Thread-locals that are there up to a thread's last moment.

/// Declares thread-locals whose type needs no destructor, which the compiler checks.
///
/// std destroys the thread-locals of a thread one after the other as the thread ends, and
/// destructors of the program's own may still poll, wake and trace meanwhile. `LocalKey::with`
/// panics on one that is destroyed already, and a panic in a destructor of a thread-local aborts
/// the program. One that needs no destructor is never destroyed. All others are used by
/// `LocalKey::try_with` alone.
#[doc(hidden)]
#[macro_export]
macro_rules! plain_thread_local {
    ($($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $value:expr;)+) => {
        $(
            const _: () = assert!(
                !::core::mem::needs_drop::<$type>(),
                concat!(stringify!($name), " has a destructor: declare it with `thread_local!`, and use `try_with`")
            );
            ::std::thread_local! { $(#[$attribute])* $visible static $name: $type = const { $value }; }
        )+
    };
}
