//! A `JoinSet` whose tasks are profiled.

use crate::profiled::{Kind, Profiled, Site};
use crate::spawn::blocking;
use crate::wrapped::Wrapped;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, LocalSet};

/// A collection of profiled tasks: tokio's [`JoinSet`](tokio::task::JoinSet), to which it
/// dereferences, with spawn methods that profile. All tasks spawned at one site are one target.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let mut set = andweorc_tokio::JoinSet::new();
/// for i in 0..3 {
///     set.spawn(async move { i });
/// }
/// let mut sum = 0;
/// while let Some(i) = set.join_next().await {
///     sum += i.unwrap();
/// }
/// assert_eq!(sum, 3);
/// # });
/// ```
#[derive(Debug)]
pub struct JoinSet<T>(tokio::task::JoinSet<T>);

impl<T> JoinSet<T> {
    /// An empty set.
    pub fn new() -> JoinSet<T> {
        JoinSet(tokio::task::JoinSet::new())
    }
}

impl<T: 'static> JoinSet<T> {
    /// Spawns a task on the current runtime.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let _wrapped = Wrapped::begin();
        self.0.spawn(Profiled::new(task, Kind::Site(Site::of::<F>())))
    }

    /// Spawns a task on the runtime of `handle`.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let _wrapped = Wrapped::begin();
        self.0.spawn_on(Profiled::new(task, Kind::Site(Site::of::<F>())), handle)
    }

    /// Spawns a `!Send` task on the current `LocalSet`.
    ///
    /// # Panics
    ///
    /// Outside of a `LocalSet`.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let _wrapped = Wrapped::begin();
        self.0.spawn_local(Profiled::new(task, Kind::Site(Site::of::<F>())))
    }

    /// Spawns a `!Send` task on `local_set`.
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let _wrapped = Wrapped::begin();
        self.0.spawn_local_on(Profiled::new(task, Kind::Site(Site::of::<F>())), local_set)
    }

    /// Runs a closure on the blocking pool.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let _wrapped = Wrapped::begin();
        self.0.spawn_blocking(blocking(f, Kind::Site(Site::of::<F>())))
    }

    /// Awaits all tasks and returns their outputs in the order of completion.
    ///
    /// # Panics
    ///
    /// When a task panicked, with its panic; the others are aborted.
    pub async fn join_all(self) -> Vec<T> {
        self.0.join_all().await
    }
}

impl<T> Deref for JoinSet<T> {
    type Target = tokio::task::JoinSet<T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for JoinSet<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    /// Spawns each future of the iterator.
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(iter: I) -> Self {
        let mut set = Self::new();
        for task in iter {
            set.spawn(task);
        }
        set
    }
}
