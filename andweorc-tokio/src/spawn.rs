//! Spawning profiled tasks.

use crate::profiled::{Kind, Profiled, Site};
use crate::wrapped::Wrapped;
use andweorc_core::hooks::thread::Poll;
use andweorc_core::hooks::{clock, enabled, thread, unstarted};
use std::borrow::Cow;
use std::future::Future;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, LocalSet};

/// Spawns a task as `tokio::spawn` does, as a target named by its function: the async function that
/// it runs, or the one that its async block is written in. In `main`, and where the future is a
/// type of its own, it is named by `file:line` of its spawn site.
///
/// # Panics
///
/// Outside of a tokio runtime, as `tokio::spawn`.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let _wrapped = Wrapped::begin();
    tokio::spawn(Profiled::new(future, Kind::Site(Site::of::<F>())))
}

/// Spawns a `!Send` task as `tokio::task::spawn_local` does, as a target named as by [`spawn`].
///
/// # Panics
///
/// Outside of a `LocalSet`, as `tokio::task::spawn_local`.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let _wrapped = Wrapped::begin();
    tokio::task::spawn_local(Profiled::new(future, Kind::Site(Site::of::<F>())))
}

/// Runs a closure on the blocking pool as `tokio::task::spawn_blocking` does, as a target named as
/// by [`spawn`].
///
/// # Panics
///
/// Outside of a tokio runtime, as `tokio::task::spawn_blocking`.
#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let _wrapped = Wrapped::begin();
    tokio::task::spawn_blocking(blocking(f, Kind::Site(Site::of::<F>())))
}

/// Wraps a closure for the blocking pool: it starts in its spawner's virtual time, and its end
/// wakes who joins it in its own.
pub(crate) fn blocking<F, R>(f: F, kind: Kind) -> impl FnOnce() -> R + Send + 'static
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    if !enabled() {
        unstarted::would_be_profiled();
    }
    let spawned = enabled().then(|| {
        let now = clock::now();
        let born = thread::virtual_at(now);
        (born, born.delay_at(now))
    });
    move || {
        let Some((born, by)) = spawned else { return f() };
        thread::in_pool(by);
        let mut scope = Poll::begin(kind.targets().task, born, None, clock::now());
        let result = f();
        scope.end(true, clock::now());
        result
    }
}

/// Spawns a task with a name of its own.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let task = andweorc_tokio::task::Builder::new().name("billing").spawn(async { 42 });
/// assert_eq!(task.await.unwrap(), 42);
/// # });
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder spawns nothing until one of its spawn methods is called"]
pub struct Builder {
    name: Option<Cow<'static, str>>,
}

impl Builder {
    /// A builder of tasks that are named by the function that they run, or by their spawn site.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Names the tasks. All tasks of one name are one target.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// The kind of its tasks: by their name, or without one by their `site`.
    fn kind(self, site: Site) -> Kind {
        self.name.map_or(Kind::Site(site), Kind::Name)
    }

    /// Spawns a task on the current runtime. See [`spawn`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let _wrapped = Wrapped::begin();
        tokio::spawn(Profiled::new(future, self.kind(Site::of::<F>())))
    }

    /// Spawns a task on the runtime of `handle`.
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let _wrapped = Wrapped::begin();
        handle.spawn(Profiled::new(future, self.kind(Site::of::<F>())))
    }

    /// Spawns a `!Send` task on the current `LocalSet`.
    ///
    /// # Panics
    ///
    /// Outside of a `LocalSet`.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let _wrapped = Wrapped::begin();
        tokio::task::spawn_local(Profiled::new(future, self.kind(Site::of::<F>())))
    }

    /// Spawns a `!Send` task on `local_set`.
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, local_set: &LocalSet) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let _wrapped = Wrapped::begin();
        local_set.spawn_local(Profiled::new(future, self.kind(Site::of::<F>())))
    }

    /// Runs a closure on the blocking pool. See [`spawn_blocking`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let _wrapped = Wrapped::begin();
        tokio::task::spawn_blocking(blocking(f, self.kind(Site::of::<F>())))
    }
}
