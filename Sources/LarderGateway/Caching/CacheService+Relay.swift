import HTTPTypes
import HTTPWire
import Larder
import LarderHTTP
import LarderServer

/// Requests for what nothing is stored of.
extension CacheService {
    func relay(_ request: PlainRequest, _ key: Key) -> ServiceRelay? {
        guard request.question.isUnconditional, !request.hasCredentials, let authority = request.authority,
            let work = cache.relayedWork(
                key,
                HTTPRequest(
                    method: .get, scheme: request.isPlaintext ? "http" : "https",
                    authority: request.head.string(authority), path: request.head.string(request.path)),
                head: { request.forwarded(host: $0, via: cache.configuration.viaName) })
        else { return nil }
        return ServiceRelay(work) { ServiceAnswer(Self.answer(to: $0), isOriginFault: $0.transport != nil) }
    }
}
