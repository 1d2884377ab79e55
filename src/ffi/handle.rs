//! Handles. A handle is a number in the shape of a pointer that names an object of this library.
//!
//! The library looks the number up and never follows it: NULL, a freed handle, one of another kind
//! and an arbitrary value are errors. A forked child may use and free the handles that it inherits;
//! those of the parent stay valid.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::domain::validate::ArgumentError;
use crate::process::fork::Process;
use crate::process::thread::ThreadNumber;

/// A number is used once in the life of a process, across all kinds of handles. Odd numbers from
/// here on are no address of any object.
static NEXT: AtomicUsize = AtomicUsize::new(0x1001);

/// Each with the thread that made it.
type Map<T> = HashMap<usize, (ThreadNumber, Arc<T>)>;

/// The objects of one kind, by the number of their handle.
///
/// The map is never changed, only replaced as a whole, under a lock that knows the process of its
/// holder. A thread that held the lock when another one forked does not exist in the child: the
/// child takes the lock over, and whichever map is there is whole.
pub(super) struct Table<T> {
    kind: &'static str,
    holder: AtomicU64,
    map: AtomicPtr<Map<T>>,
    objects: PhantomData<Arc<T>>,
}

struct Locked<'a, T> {
    table: &'a Table<T>,
}

impl<T> Table<T> {
    /// An empty table; `kind` names its objects in messages.
    pub(super) const fn new(kind: &'static str) -> Self {
        Self {
            kind,
            holder: AtomicU64::new(0),
            map: AtomicPtr::new(std::ptr::null_mut()),
            objects: PhantomData,
        }
    }

    fn lock(&self) -> Locked<'_, T> {
        let this = Process::this().number();
        loop {
            match self.holder.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(holder) if holder != this => {
                    // Left behind by a thread of the process that this one was forked from.
                    if self
                        .holder
                        .compare_exchange(holder, this, Ordering::Acquire, Ordering::Relaxed)
                        .is_ok()
                    {
                        break;
                    }
                }
                // Held for as long as it takes to look up, or to copy a small map.
                Err(_) => std::thread::yield_now(),
            }
        }
        Locked { table: self }
    }

    /// Keeps an object and names its handle.
    pub(super) fn insert<H>(&self, object: T) -> *mut H {
        let number = NEXT.fetch_add(2, Ordering::Relaxed);
        let object = Arc::new(object);
        self.lock().replace(|map| {
            map.insert(number, (ThreadNumber::this(), object));
        });
        std::ptr::without_provenance_mut(number)
    }

    /// The object of a handle.
    pub(super) fn get<H>(
        &self,
        argument: &'static str,
        handle: *const H,
    ) -> Result<Arc<T>, ArgumentError> {
        if handle.is_null() {
            return Err(ArgumentError::new(argument, format!("is NULL; it must be {}", self.kind)));
        }
        let found = self
            .lock()
            .map()
            .and_then(|map| map.get(&handle.addr()).map(|(_, object)| Arc::clone(object)));
        found
            .ok_or_else(|| ArgumentError::new(argument, format!("is not {} (any more)", self.kind)))
    }

    /// Forgets a handle. Its object ends with the last call that uses it.
    pub(super) fn remove<H>(&self, handle: *const H) -> Option<Arc<T>> {
        let mut removed = None;
        let locked = self.lock();
        if locked.map().is_some_and(|map| map.contains_key(&handle.addr())) {
            locked.replace(|map| removed = map.remove(&handle.addr()).map(|(_, object)| object));
        }
        drop(locked);
        removed
    }

    /// Forgets all handles that the calling thread made.
    pub(super) fn remove_all_of_this_thread(&self) -> Vec<Arc<T>> {
        let mut removed = Vec::new();
        let locked = self.lock();
        if locked.map().is_some_and(|map| !map.is_empty()) {
            let thread = ThreadNumber::this();
            locked.replace(|map| {
                let own = map.extract_if(|_, (maker, _)| *maker == thread);
                removed = own.map(|(_, (_, object))| object).collect();
            });
        }
        drop(locked);
        removed
    }
}

impl<T> Locked<'_, T> {
    fn map(&self) -> Option<&Map<T>> {
        // SAFETY: null, or a map that replace() published; it is only dropped by replace(), under
        // the lock that `self` is.
        unsafe { self.table.map.load(Ordering::Relaxed).as_ref() }
    }

    fn replace(&self, change: impl FnOnce(&mut Map<T>)) {
        let mut map = self.map().cloned().unwrap_or_default();
        change(&mut map);
        let before = self.table.map.swap(Box::into_raw(Box::new(map)), Ordering::Relaxed);
        if !before.is_null() {
            // SAFETY: it came from Box::into_raw above, and the lock excludes every other user.
            drop(unsafe { Box::from_raw(before) });
        }
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.table.holder.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Handle;

    #[test]
    fn handles_name_their_object_until_they_are_removed() {
        static TABLE: Table<u8> = Table::new("a number");
        let one: *mut Handle = TABLE.insert(1);
        let two: *mut Handle = TABLE.insert(2);
        assert_ne!(one, two);
        assert_eq!((*TABLE.get("x", one).unwrap(), *TABLE.get("x", two).unwrap()), (1, 2));
        assert_eq!(TABLE.remove(one).map(|object| *object), Some(1));
        assert!(TABLE.remove(one).is_none());
        assert_eq!(TABLE.get("x", one).unwrap_err().to_string(), "$x is not a number (any more)");
        assert_eq!(
            TABLE.get::<Handle>("x", std::ptr::null()).unwrap_err().to_string(),
            "$x is NULL; it must be a number"
        );
        let others = std::thread::spawn(|| TABLE.insert::<Handle>(3).addr()).join().unwrap();
        assert_eq!(TABLE.remove_all_of_this_thread().len(), 1);
        assert!(TABLE.get("x", two).is_err());
        let others: *const Handle = std::ptr::without_provenance(others);
        assert_eq!(*TABLE.get("x", others).unwrap(), 3, "the handle of another thread stays");
    }

    #[test]
    fn a_handle_of_another_kind_or_of_nothing_is_refused() {
        static NUMBERS: Table<u8> = Table::new("a number");
        static WORDS: Table<&str> = Table::new("a word");
        let number: *mut Handle = NUMBERS.insert(1);
        let garbage: *const Handle = std::ptr::without_provenance(0xdead_beef);
        assert!(WORDS.get("x", number).is_err());
        assert!(NUMBERS.get("x", garbage).is_err() && NUMBERS.remove(garbage).is_none());
    }

    #[test]
    fn child_takes_over_a_lock_that_was_held_at_the_fork() {
        static TABLE: Table<u8> = Table::new("a number");
        let one: *mut Handle = TABLE.insert(1);
        let this = Process::this().number();
        // Of another pid; of this very pid before a fork.
        for parent in [this + (1 << 32), this + 1] {
            TABLE.holder.store(parent, Ordering::Relaxed);
            assert_eq!(*TABLE.get("x", one).unwrap(), 1);
            assert_eq!(TABLE.holder.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn threads_use_a_table_at_once() {
        static TABLE: Table<usize> = Table::new("a number");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for round in 0..500 {
                        let handle: *mut Handle = TABLE.insert(thread * 1_000 + round);
                        assert_eq!(*TABLE.get("x", handle).unwrap(), thread * 1_000 + round);
                        assert!(TABLE.remove(handle).is_some());
                    }
                });
            }
        });
        assert!(TABLE.remove_all_of_this_thread().is_empty());
    }
}
