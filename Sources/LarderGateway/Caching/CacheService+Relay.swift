import HTTPTypes
import HTTPWire
import Larder
import LarderHTTP
import LarderServer

/// Requests for what nothing is stored of.
extension CacheService {
    func relay(_ request: PlainRequest, _ key: Key) -> ServiceRelay? {
        guard request.question.isUnconditional, !request.hasCredentials, let authority = request.authority,
            let relayed = cache.relayedRequest(
                key,
                HTTPRequest(
                    method: .get, scheme: request.isPlaintext ? "http" : "https",
                    authority: request.head.string(authority), path: request.head.string(request.path)))
        else { return nil }
        var head: [UInt8] = []
        request.appendForwarded(host: relayed.host, via: cache.configuration.viaName, to: &head)
        return ServiceRelay(relayed, head: head) {
            ServiceAnswer(Self.answer(to: $0), isOriginFault: $0.transport != nil)
        }
    }
}
