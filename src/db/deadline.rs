//! The time limit of a connection's statements.
//!
//! A timer per statement would be set and cancelled for every heartbeat, and would almost never
//! fire. One timer stays set instead: a statement that ends in time leaves it as it is, and a timer
//! that fires before the limit of the current statement is set again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::task::{unconstrained, yield_now};
use tokio::time::{Instant, Sleep, sleep_until};

use super::socket_wait::Socket;

/// A timer that stays set.
pub(crate) struct StatementDeadline {
    timer: Pin<Box<Sleep>>,
}

impl StatementDeadline {
    /// Creates a timer on the current runtime.
    pub(crate) fn new() -> Self {
        Self { timer: Box::pin(sleep_until(Instant::now())) }
    }

    /// Waits for the work for at most `limit`, on the socket where one is given. Returns `None`
    /// after the limit.
    pub(crate) async fn bounded<T>(
        &mut self,
        limit: Duration,
        mut socket: Option<Socket>,
        work: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let timer = &mut self.timer;
        let deadline = Instant::now() + limit;
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        // A connection's runtime has no other work. Without this, long work would be made to pause
        // although it could continue, and a pause before a request is sent must not be mistaken for
        // waiting for its reply.
        let mut work = pin!(unconstrained(work));
        let mut again = pin!(yield_now());
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            // This happens once: the rest of a reply, after its first bytes, is awaited in the
            // runtime.
            if let Some(socket) = socket.take()
                && socket.wait(limit)
            {
                // The runtime polls its sockets without waiting, and returns.
                let _ = again.as_mut().poll(context);
                return Poll::Pending;
            }
            while timer.as_mut().poll(context).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(None);
                }
                timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test)
    }

    #[test]
    fn each_call_is_bounded_by_its_own_limit() {
        run(async {
            let mut deadline = StatementDeadline::new();
            for (before, limit) in [(1, 40), (40, 1), (3_600_000, 20), (20, 20)] {
                // This ends at once, and leaves the timer set as it is.
                assert_eq!(
                    deadline.bounded(Duration::from_millis(before), None, pin!(ready(7))).await,
                    Some(7)
                );
                let limit = Duration::from_millis(limit);
                let started = Instant::now();
                assert_eq!(deadline.bounded(limit, None, pin!(pending::<()>())).await, None);
                assert!(started.elapsed() >= limit);
                // A timer left set to an hour from now would hang the test here.
            }
        });
    }

    #[test]
    fn a_longer_limit_replaces_an_earlier_shorter_one() {
        run(async {
            let mut deadline = StatementDeadline::new();
            assert_eq!(
                deadline.bounded(Duration::from_millis(5), None, pin!(ready(()))).await,
                Some(())
            );
            let slow = tokio::time::sleep(Duration::from_millis(30));
            assert_eq!(deadline.bounded(Duration::from_secs(60), None, pin!(slow)).await, Some(()));
        });
    }
}
