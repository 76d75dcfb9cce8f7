import Foundation
import LarderHTTP
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The sessions of a transport.
///
/// Apple's URLSession can pause a task: one session serves all requests. That of Linux cannot: `suspend()` drops the
/// connection, and `resume()` sends the request a second time. What it can do is wait in a delegate's call, if its
/// delegate queue runs the call where it is made, on the session's own queue. All tasks of a session share that queue,
/// so each request gets a session of its own; a session that is done serves the next request to the same server, over
/// the connection it has kept.
final class SessionPool: Sendable {
    private struct State {
        var idle: [(endpoint: String, session: InnerSession)] = []
        var busy: [ObjectIdentifier: InnerSession] = [:]
        var isClosed = false
    }

    /// Sessions kept for later requests.
    private static let idleLimit = 16

    let held = HeldBytes()
    private let state = Mutex(State())
    /// Never changed after the initializer; each session copies it.
    private let configuration: URLSessionConfiguration

    init(_ given: URLSessionConfiguration) {
        let configuration = given.copy() as? URLSessionConfiguration ?? .ephemeral
        // No caching below the cache, and no protocol that would ask it.
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.protocolClasses = configuration.protocolClasses?.filter { !($0 is CachingURLProtocol.Type) }
        // They are added before the cache is asked, so that `Vary` can select by them.
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        self.configuration = configuration
    }

    deinit { close() }

    func close() {
        let sessions = state.withLock { state -> [InnerSession] in
            state.isClosed = true
            defer {
                state.idle = []
                state.busy = [:]
            }
            return state.idle.map(\.session) + state.busy.values
        }
        for session in sessions { session.close() }
    }

    /// Starts a request.
    func start(_ request: URLRequest, _ exchange: Exchange, _ endpoint: String) throws(TransportError) {
        let session = state.withLock { state -> InnerSession? in
            guard !state.isClosed else { return nil }
            #if canImport(FoundationNetworking)
                let place = state.idle.lastIndex { $0.endpoint == endpoint }
                let session = place.map { state.idle.remove(at: $0).session } ?? InnerSession(configuration)
            #else
                let session = state.busy.values.first ?? InnerSession(configuration)
            #endif
            state.busy[ObjectIdentifier(session)] = session
            return session
        }
        guard let session else {
            throw TransportError(
                .cannotConnect, mayHaveBeenSeen: false, endpoint: endpoint, "the transport is closed")
        }
        session.start(request, exchange) { [weak self] in
            #if canImport(FoundationNetworking)
                if let self { self.release(session, endpoint) } else { session.close() }
            #endif
        }
    }

    /// Keeps a session whose request has ended.
    private func release(_ session: InnerSession, _ endpoint: String) {
        let surplus = state.withLock { state -> InnerSession? in
            guard state.busy.removeValue(forKey: ObjectIdentifier(session)) != nil else { return nil }
            state.idle.append((endpoint, session))
            return state.idle.count > Self.idleLimit ? state.idle.removeFirst().session : nil
        }
        surplus?.close()
    }
}
