import ArgumentParser
import CachectlCore
import HTTPCaching
import Larder
import LarderGateway
import LarderHTTP
import Logging

/// The settings of `serve`, checked against each other and converted for the gateway.
struct ServeSetup: Sendable {
    var gateway = GatewayConfiguration()
    var timeouts = Timeouts()
    var name = "larder"
    /// Of all messages; SIGHUP may change them.
    let levels: LogLevels
    /// Uses HTTP/2 with origins that offer it.
    var usesHTTP2 = false
    /// Of the head of an origin's response, in bytes.
    var responseHead = 64 << 10
    var foldedContentCodings: [String] = []
    var sliceBytes: Int64?
    var compressesBodies = false
    var caching = CachingOptions.gateway
    /// The origins, for people to read.
    var destinations: [String] = []

    init(_ settings: ServeSettings) throws {
        levels = settings.server.logLevels
        try settings.server.configure(&gateway.server, levels, http2: settings.http2)
        gateway.routes = try Self.routes(settings)
        destinations = Self.destinations(gateway.routes, settings.origin)
        if settings.tunnel == nil, !settings.tunnelPort.isEmpty {
            throw ValidationError("--tunnel-port needs --tunnel.")
        }
        gateway.tunnels.isAllowed = settings.tunnel ?? false
        if !settings.tunnelPort.isEmpty { gateway.tunnels.ports = Set(settings.tunnelPort) }
        gateway.purging.isEnabled = settings.purge ?? true
        gateway.purging.token = settings.purgeToken
        name = settings.name ?? name
        timeouts.connect = settings.connectTimeout ?? timeouts.connect
        timeouts.read = settings.readTimeout ?? timeouts.read
        timeouts.queue = settings.queueTimeout ?? timeouts.queue
        timeouts.total = settings.totalTimeout
        usesHTTP2 = settings.originHTTP2 ?? false
        responseHead = settings.maxResponseHead.map { Int(clamping: $0.bytes) } ?? responseHead
        foldedContentCodings = settings.foldEncoding
        sliceBytes = settings.slice?.bytes
        compressesBodies = settings.compress ?? false
        setLimits(settings)
        setCaching(settings)
    }

    private mutating func setCaching(_ settings: ServeSettings) {
        caching.cacheName = name
        if let limit = settings.staleLimit { caching.disconnectedStaleLimitSeconds = limit.components.seconds }
        caching.servesStaleForServerErrors = settings.staleOnError ?? false
        caching.setCookie = settings.setCookie?.policy ?? caching.setCookie
        caching.fieldsKeptOnUpdate = Set(settings.keepField)
        caching.trustsAge = settings.trustAge ?? false
    }

    private mutating func setLimits(_ settings: ServeSettings) {
        gateway.limits.idleTimeout = settings.idleTimeout ?? gateway.limits.idleTimeout
        gateway.limits.headTimeout = settings.headTimeout ?? gateway.limits.headTimeout
        gateway.limits.headBytes = settings.maxHead.map { Int(clamping: $0.bytes) } ?? gateway.limits.headBytes
        gateway.limits.bodyBytes = settings.maxBody?.bytes ?? gateway.limits.bodyBytes
        gateway.limits.connectionsPerClient = settings.maxClientConnections ?? gateway.limits.connectionsPerClient
        gateway.limits.requestsPerClient = settings.maxClientRequests ?? gateway.limits.requestsPerClient
        gateway.limits.limitsLoopback = settings.limitLoopback ?? gateway.limits.limitsLoopback
        gateway.limits.contentTimeout = settings.contentTimeout ?? gateway.limits.contentTimeout
        gateway.limits.responseTimeout = settings.responseTimeout
    }

    private static func routes(_ settings: ServeSettings) throws -> Routes {
        var routes = Routes(allowsForwarding: settings.forward ?? false, passesHost: settings.passHost ?? true)
        for origin in settings.origin {
            if let host = origin.host {
                guard routes.hosts.updateValue(origin.server, forKey: host) == nil else {
                    throw ValidationError("--origin \(origin.text): \(host) already has an origin.")
                }
            } else if routes.otherwise == nil {
                routes.otherwise = origin.server
            } else {
                throw ValidationError(
                    "--origin \(origin.text): only one origin can be for all hosts. Use HOST=URL for the others.")
            }
        }
        if routes.otherwise == nil, routes.hosts.isEmpty, !routes.allowsForwarding {
            throw ValidationError("Give --origin URL, or --forward for a proxy.")
        }
        if routes.otherwise != nil, routes.allowsForwarding {
            throw ValidationError("--forward cannot be combined with an --origin for all hosts.")
        }
        return routes
    }

    private static func destinations(_ routes: Routes, _ origins: [OriginArgument]) -> [String] {
        let hosts = origins.map { origin in
            let url = origin.text.split(separator: "=", maxSplits: origin.host == nil ? 0 : 1).last ?? ""
            return "\(origin.host ?? "every host") at \(url)"
        }
        return hosts + (routes.allowsForwarding ? ["other hosts at the server in the URL"] : [])
    }
}
