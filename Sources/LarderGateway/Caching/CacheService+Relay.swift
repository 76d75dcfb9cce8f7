import HTTPTypes
import HTTPWire
import Larder
import LarderHTTP
import LarderServer

/// Requests for what nothing is stored of.
extension CacheService {
    func relay(_ request: PlainRequest, _ key: Key) -> ServiceRelay? {
        guard request.question.isUnconditional, !request.hasCredentials, let authority = request.authority,
            let way = cache.relayedWay(
                key,
                HTTPRequest(
                    method: .get, scheme: request.isPlaintext ? "http" : "https",
                    authority: request.head.string(authority), path: request.head.string(request.path)))
        else { return nil }
        let work: any RelayedWork
        switch way {
        case .ask(let relayed):
            request.appendForwarded(host: relayed.host, via: cache.configuration.viaName, to: &relayed.head)
            work = relayed
        case .follow(let follower): work = follower
        }
        return ServiceRelay(work) { ServiceAnswer(Self.answer(to: $0), isOriginFault: $0.transport != nil) }
    }
}
