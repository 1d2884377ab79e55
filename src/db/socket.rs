//! The sockets of this process's connections, so that closing a connection closes it for the server
//! too.
//!
//! The driver does not expose its socket, and its own closing neither waits nor reaches copies: a
//! forked child holds a copy of every descriptor, and close(2) leaves the connection open as long
//! as one copy is. Therefore the socket of every connection is found once, right after it is
//! opened, and registered here. The process that opened it ends it by shutdown(2), which reaches
//! all copies; a forked child closes its copies by close(2), which the server does not notice.
//!
//! The kernel reports the socket: it lists what a runtime's epoll instance watches. Where that
//! cannot be read (systems other than Linux, no /proc), a connection is closed without reaching the
//! copies in children.

use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// A descriptor, and the data that shows whether the number was closed and reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) fd: RawFd,
    device: u64,
    inode: u64,
}

impl Descriptor {
    /// Returns what a descriptor number refers to now.
    fn of(fd: RawFd) -> Option<Self> {
        // SAFETY: plain data, filled by the call before it is read. The call is allowed in handlers
        // of signals and forks.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &raw mut status) == 0).then(|| Self {
                fd,
                device: wide(status.st_dev),
                inode: wide(status.st_ino),
            })
        }
    }

    fn is_open(self) -> bool {
        Self::of(self.fd) == Some(self)
    }
}

/// The systems differ in the widths of these numbers.
fn wide<T>(number: T) -> u64
where
    u64: TryFrom<T>,
{
    u64::try_from(number).unwrap_or(0)
}

/// No descriptor is registered here.
const FREE: RawFd = -1;
/// One is being registered.
const RESERVED: RawFd = -2;

/// A place for one descriptor. Places are never freed, so that a forked child can walk them at any
/// moment without a lock.
struct Place {
    fd: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
    next: *const Place,
}

// SAFETY: all fields but `next` are atomics, and `next` is written before the place is published.
unsafe impl Sync for Place {}

static PLACES: AtomicPtr<Place> = AtomicPtr::new(null_mut());

fn places() -> impl Iterator<Item = &'static Place> {
    // SAFETY: null, or from Box::leak in register(), and never freed.
    let first = unsafe { PLACES.load(Ordering::Acquire).as_ref() };
    // SAFETY: as above; `next` was the first place when this one was made.
    std::iter::successors(first, |place| unsafe { place.next.as_ref() })
}

impl Place {
    fn descriptor(&self) -> Option<Descriptor> {
        let fd = self.fd.load(Ordering::Acquire);
        (fd >= 0).then(|| Descriptor {
            fd,
            device: self.device.load(Ordering::Relaxed),
            inode: self.inode.load(Ordering::Relaxed),
        })
    }
}

/// A registered socket of this process.
pub(super) struct OwnSocket {
    place: &'static Place,
    descriptor: Descriptor,
}

impl OwnSocket {
    fn register(descriptor: Descriptor) -> Self {
        let free = places().find(|place| {
            place.fd.compare_exchange(FREE, RESERVED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        let place = free.unwrap_or_else(|| {
            let place = Box::leak(Box::new(Place {
                fd: AtomicI32::new(RESERVED),
                device: AtomicU64::new(0),
                inode: AtomicU64::new(0),
                next: std::ptr::null(),
            }));
            let mut first = PLACES.load(Ordering::Acquire);
            loop {
                place.next = first;
                let this = std::ptr::from_mut(place);
                match PLACES.compare_exchange(first, this, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return &*place,
                    Err(now) => first = now,
                }
            }
        });
        place.device.store(descriptor.device, Ordering::Relaxed);
        place.inode.store(descriptor.inode, Ordering::Relaxed);
        place.fd.store(descriptor.fd, Ordering::Release);
        Self { place, descriptor }
    }

    /// Finds and registers the socket of the connection that was just opened on the calling
    /// thread's runtime. `None` where the system does not report it.
    pub(super) fn of_new_connection() -> Option<Self> {
        let found = unregistered();
        match found.as_slice() {
            &[descriptor] => Some(Self::register(descriptor)),
            _ => None,
        }
    }

    /// Registers a socket that the runtime itself has opened.
    pub(super) fn of(socket: &impl AsRawFd) -> std::io::Result<Self> {
        let descriptor = Descriptor::of(socket.as_raw_fd());
        descriptor.map(Self::register).ok_or_else(std::io::Error::last_os_error)
    }

    /// Returns the descriptor's number.
    pub(super) const fn fd(&self) -> RawFd {
        self.descriptor.fd
    }

    /// Returns whether the socket still belongs to the calling process: a forked child has closed
    /// its copy.
    pub(super) fn is_ours(&self) -> bool {
        self.place.descriptor() == Some(self.descriptor)
    }

    /// Ends the connection at once, in every process that holds a copy of the socket. The
    /// descriptor stays open.
    pub(super) fn shut_down(&self) {
        if self.is_ours() && self.descriptor.is_open() {
            shut_down(self.descriptor);
        }
    }

    /// Returns a copy of the descriptor, which the caller closes.
    pub(super) fn duplicate(&self) -> Option<std::os::fd::OwnedFd> {
        use std::os::fd::FromRawFd;
        if !self.is_ours() || !self.descriptor.is_open() {
            return None;
        }
        // SAFETY: the descriptor is open; a new one belongs to no other object.
        unsafe {
            let copy = libc::fcntl(self.descriptor.fd, libc::F_DUPFD_CLOEXEC, 0);
            (copy >= 0).then(|| std::os::fd::OwnedFd::from_raw_fd(copy))
        }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if self.is_ours() {
            self.place.fd.store(FREE, Ordering::Release);
        }
    }
}

/// Ends the connection of a copied socket.
pub(super) fn end(copy: &std::os::fd::OwnedFd) {
    // SAFETY: a system call on a descriptor that is open; it changes no memory.
    unsafe {
        libc::shutdown(copy.as_raw_fd(), libc::SHUT_RDWR);
    }
}

fn shut_down(descriptor: Descriptor) {
    // SAFETY: a system call on a number; it changes no memory.
    unsafe {
        libc::shutdown(descriptor.fd, libc::SHUT_RDWR);
    }
}

/// Ends the sockets that an attempt to connect on the calling thread's runtime has left open.
pub(super) fn shut_down_unregistered() {
    unregistered().into_iter().for_each(shut_down);
}

/// Closes the copies of the parent's sockets in a forked child, which the server does not notice.
///
/// Runs in the handler of a fork: it takes no lock, allocates nothing, and calls nothing but
/// fstat(2) and close(2).
pub(crate) fn close_inherited() {
    for place in places() {
        let inherited = place.descriptor();
        place.fd.store(FREE, Ordering::Relaxed);
        if let Some(descriptor) = inherited
            && descriptor.is_open()
        {
            // SAFETY: a socket of the parent's connection. What refers to it in this process is
            // never used or dropped: it belongs to the parent (see `process::fork::PerProcess`).
            unsafe {
                libc::close(descriptor.fd);
            }
        }
    }
}

/// Returns the sockets with a peer that the calling thread's runtime watches and that are not
/// registered.
fn unregistered() -> Vec<Descriptor> {
    let mut found = watched_by_this_runtime().unwrap_or_default();
    found.retain(|&descriptor| {
        descriptor.is_open()
            && has_peer(descriptor.fd)
            && !places().any(|place| place.descriptor() == Some(descriptor))
    });
    found
}

/// Returns what the calling thread's runtime watches.
#[cfg(target_os = "linux")]
fn watched_by_this_runtime() -> Option<Vec<Descriptor>> {
    // Watched by this runtime alone: distinguishes its epoll instance from others of this process.
    let marker = tokio::net::UnixDatagram::unbound().ok()?;
    let mark = Descriptor::of(marker.as_raw_fd())?;
    let is_mark = |&(fd, inode): &(RawFd, u64)| fd == mark.fd && inode == mark.inode;
    for entry in std::fs::read_dir("/proc/self/fd").ok()?.flatten() {
        if std::fs::read_link(entry.path())
            .is_ok_and(|link| link.as_os_str() == "anon_inode:[eventpoll]")
        {
            let place = std::path::Path::new("/proc/self/fdinfo").join(entry.file_name());
            let Ok(information) = std::fs::read_to_string(place) else {
                continue;
            };
            let watched: Vec<_> = information.lines().filter_map(watched).collect();
            if watched.iter().any(is_mark) {
                let others = watched.into_iter().filter(|entry| !is_mark(entry));
                return Some(
                    others
                        .filter_map(|(fd, inode)| {
                            Descriptor::of(fd).filter(|descriptor| descriptor.inode == inode)
                        })
                        .collect(),
                );
            }
        }
    }
    None
}

#[cfg(not(target_os = "linux"))]
fn watched_by_this_runtime() -> Option<Vec<Descriptor>> {
    None
}

/// A line of the kernel's report about an epoll instance: `tfd: 11 events: 8000201d data: 55d0
/// pos:0 ino:9 sdev:7`.
#[cfg(target_os = "linux")]
fn watched(line: &str) -> Option<(RawFd, u64)> {
    let mut words = line.split_ascii_whitespace();
    if words.next()? != "tfd:" {
        return None;
    }
    let fd = words.next()?.parse().ok()?;
    let number = words.find_map(|word| word.strip_prefix("ino:"))?;
    Some((fd, u64::from_str_radix(number, 16).ok()?))
}

/// Returns whether this is a socket that is connected, or connecting, to a peer that has a name.
/// Pairs, which runtimes use among themselves, have none.
fn has_peer(fd: RawFd) -> bool {
    // SAFETY: plain data, and its true length; the address is read as far as the call has filled
    // it.
    unsafe {
        let mut name: libc::sockaddr_storage = std::mem::zeroed();
        let mut length =
            libc::socklen_t::try_from(size_of::<libc::sockaddr_storage>()).unwrap_or(0);
        if libc::getpeername(fd, (&raw mut name).cast(), &raw mut length) != 0 {
            return false;
        }
        i32::from(name.ss_family) != libc::AF_UNIX
            || length as usize > size_of::<libc::sa_family_t>()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Read;
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;

    use super::*;

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    fn place(name: &str) -> (PathBuf, UnixListener) {
        let path = std::env::temp_dir().join(format!("nrllm-socket-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        (path, listener)
    }

    #[test]
    fn a_line_of_the_kernel_is_read() {
        assert_eq!(
            watched("tfd:       11 events: 8000201d data:     55d0f1 pos:0 ino:9f sdev:7"),
            Some((11, 0x9f))
        );
        assert_eq!(watched("pos:\t0"), None);
        assert_eq!(
            watched("tfd:        5 events:       19 data:                5"),
            None,
            "an old kernel reports no inode"
        );
    }

    #[test]
    fn the_new_connection_is_found_among_all_others() {
        let (path, listener) = place("found");
        // Sockets of other owners, in no runtime and in another one.
        let foreign = UnixStream::connect(&path).unwrap();
        let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let elsewhere = other.block_on(tokio::net::UnixStream::connect(&path)).unwrap();
        run(async {
            assert!(OwnSocket::of_new_connection().is_none(), "no connection yet");
            let first = tokio::net::UnixStream::connect(&path).await.unwrap();
            let socket = OwnSocket::of_new_connection().unwrap();
            assert_eq!(socket.fd(), first.as_raw_fd());
            let over_tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let second = tokio::net::TcpStream::connect(over_tcp.local_addr().unwrap()).await;
            let second = second.unwrap();
            let other = OwnSocket::of_new_connection().unwrap();
            assert_eq!(other.fd(), second.as_raw_fd(), "the first is registered");
            drop(other);
            assert_eq!(OwnSocket::of_new_connection().unwrap().fd(), second.as_raw_fd());
        });
        drop((foreign, elsewhere, listener));
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_shut_down_reaches_copies() {
        let (path, listener) = place("copies");
        run(async {
            let ours = tokio::net::UnixStream::connect(&path).await.unwrap();
            let socket = OwnSocket::of_new_connection().unwrap();
            let copy = socket.duplicate().unwrap();
            let mut peer = listener.accept().unwrap().0;
            peer.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            socket.shut_down();
            assert_eq!(peer.read(&mut [0]).unwrap(), 0);
            drop((ours, copy));
        });
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_reused_descriptor_is_left_alone() {
        let (path, listener) = place("reused");
        run(async {
            let ours = tokio::net::UnixStream::connect(&path).await.unwrap();
            let socket = OwnSocket::of_new_connection().unwrap();
            let fd = ours.as_raw_fd();
            drop(ours);
            let (other, mut peer) = UnixStream::pair().unwrap();
            // SAFETY: both are open descriptors of this test.
            assert_eq!(unsafe { libc::dup2(other.into_raw_fd(), fd) }, fd);
            socket.shut_down();
            peer.set_nonblocking(true).unwrap();
            let error = peer.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "shut down");
            // SAFETY: opened above.
            unsafe { libc::close(fd) };
        });
        drop(listener);
        let _ = std::fs::remove_file(&path);
    }
}
