import LarderHTTP
import Logging
import Locks

/// Logs which origins fail, and why: clients see only a 502 without names, a stale response, or a response that is cut.
///
/// Logs the same failure once a minute, with its number of occurrences.
struct OriginFailureLog: Transport {
    private let inner: any Transport
    private let relaying: (any RelayingTransport)?
    private let logger: Logger
    private let failures = Failures()

    /// Wraps the transport that opens connections.
    init(over inner: any Transport, _ logger: Logger) {
        self.inner = inner
        relaying = inner as? any RelayingTransport
        self.logger = logger
    }

    func endpoint(for request: TransportRequest) -> String { inner.endpoint(for: request) }

    var heldBytes: Int { inner.heldBytes }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        do throws(TransportError) {
            var response = try await inner.send(request)
            response.body = watched(response.body)
            return response
        } catch {
            log(error)
            throw error
        }
    }

    private func watched(_ body: TransportBody) -> TransportBody {
        // One that came with its head does not fail any more.
        guard body.whole == nil else { return body }
        return TransportBody(length: body.length) { () throws(TransportError) in
            do throws(TransportError) {
                return try await body.next()
            } catch {
                log(error)
                throw error
            }
        }
    }

    private func log(_ error: TransportError) {
        guard error.code != .cancelled, let count = failures.count(error) else { return }
        let more = count > 1 ? " (\(count) times since the last such line)" : ""
        logger.warning("an origin failed: \(error.message)\(more)", metadata: ["category": "origins"])
    }

    private final class Failures: Sendable {
        private struct Seen {
            var told: ContinuousClock.Instant
            var count = 0
        }

        /// A forward proxy may have many failing origins at a time. Beyond this number, the oldest are forgotten.
        private static let limit = 256

        private let seen = Mutex<[String: Seen]>([:])

        /// The number of occurrences since it was logged; nil if it should not be logged now.
        func count(_ error: TransportError) -> Int? {
            let now = ContinuousClock.now
            return seen.withLock { seen in
                if var known = seen[error.message] {
                    known.count += 1
                    let isDue = now - known.told >= .seconds(60)
                    seen[error.message] = isDue ? Seen(told: now) : known
                    return isDue ? known.count : nil
                }
                if seen.count >= Self.limit, let oldest = seen.min(by: { $0.value.told < $1.value.told })?.key {
                    seen[oldest] = nil
                }
                seen[error.message] = Seen(told: now)
                return 1
            }
        }
    }
}

extension OriginFailureLog: RelayingTransport {
    func route(scheme: String, authority: String) -> RelayRoute? {
        relaying?.route(scheme: scheme, authority: authority)
    }

    func relay(
        _ head: [UInt8], to route: RelayRoute, _ timeouts: Timeouts,
        _ receive: @escaping @Sendable (RelayEvent) -> Void
    ) -> (any RelayedExchange)? {
        relaying?.relay(head, to: route, timeouts) { event in
            switch event {
            case .informational: receive(event)
            case .response(let head, let body): receive(.response(head, watched(body)))
            case .failure(let error):
                // An idle connection that has ended says nothing about the origin.
                if !error.lostKeptConnection { log(error) }
                receive(event)
            }
        }
    }
}
