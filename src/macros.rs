//! The macros that mark points.

/// Counts one unit of work done: a progress point, with a name or named by `file:line`.
///
/// When not enabled it costs one relaxed load and a branch. It is also a place where a thread pays
/// the delay that it owes.
///
/// ```
/// fn serve_one() {
///     // ...
///     andweorc::progress!("request");
/// }
/// # serve_one();
/// # andweorc::progress!();
/// ```
#[macro_export]
macro_rules! progress {
    () => {
        $crate::progress!(::core::concat!(::core::file!(), ":", ::core::line!()))
    };
    ($name:expr) => {
        if $crate::__private::enabled() {
            $crate::__point!(Progress, $name).hit();
            $crate::__private::catch_up();
        }
    };
}

/// Begins an interval of a latency point on the calling thread. [`end!`](crate::end) with the same
/// name ends it.
///
/// Intervals nest. They belong to their thread: in async code, where a task may go on elsewhere
/// after an await, use a tracing span.
///
/// ```
/// fn query() {
///     andweorc::begin!("query");
///     // ...
///     andweorc::end!("query");
/// }
/// # query();
/// ```
#[macro_export]
macro_rules! begin {
    ($name:expr) => {
        if $crate::__private::enabled() {
            $crate::__point!(Latency, $name).begin();
        }
    };
}

/// Ends the interval of a latency point that began last on the calling thread. See
/// [`begin!`](crate::begin). An end without a begin is counted, and the report says so.
#[macro_export]
macro_rules! end {
    ($name:expr) => {
        if $crate::__private::was_enabled() {
            $crate::__point!(Latency, $name).end();
        }
    };
}

/// The point of this kind and name, looked up once a place.
#[doc(hidden)]
#[macro_export]
macro_rules! __point {
    ($kind:ident, $name:expr) => {{
        static POINT: ::std::sync::OnceLock<&'static $crate::__private::Point> =
            ::std::sync::OnceLock::new();
        POINT.get_or_init(|| {
            let kind = $crate::__private::PointKind::$kind;
            $crate::__private::point(kind, $name, None, None, true)
        })
    }};
}
