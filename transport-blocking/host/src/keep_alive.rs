//! TCP connections that are quiet for long.

use std::time::Duration;

use rustix::fd::AsFd;
use rustix::net::sockopt::set_socket_keepalive;

/// After this time without a byte, the system probes a connection. Shorter: more needless packets.
/// Longer: firewalls and load balancers forget connections, the strictest ones after a few minutes.
pub const TCP_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Makes the system probe a TCP connection once it has been quiet for [`TCP_KEEP_ALIVE`]: so
/// firewalls do not forget it, and a dead server is detected. OpenBSD and Haiku have one time for
/// all connections, which the administrator sets (`net.inet.tcp.keepidle`).
///
/// Everything else works without these probes, so errors of the system are ignored.
pub fn keep_alive(socket: impl AsFd) {
    // On Windows a reference to a socket is none itself.
    let socket = socket.as_fd();
    let _ = set_socket_keepalive(socket, true);
    #[cfg(not(any(target_os = "openbsd", target_os = "haiku")))]
    let _ = rustix::net::sockopt::set_tcp_keepidle(socket, TCP_KEEP_ALIVE);
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use rustix::net::sockopt::{socket_keepalive, tcp_keepidle};

    use super::*;

    #[test]
    fn the_system_is_told_to_probe_a_quiet_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!socket_keepalive(&socket).unwrap());
        keep_alive(&socket);
        assert!(socket_keepalive(&socket).unwrap());
        assert_eq!(tcp_keepidle(&socket).unwrap(), TCP_KEEP_ALIVE);
    }
}
