import AsyncHTTPClient
import NIOHTTPCompression

/// Settings that AsyncHTTPClient takes and does not give back: a cache needs them, because redirects and decompression
/// happen above it. They are read by reflection. Where that fails, as in a program built without reflection metadata,
/// the answer is the cautious one: redirects are not followed, content is not sent twice, and
/// decompressed bodies are limited to ``fallbackRatio`` times what arrived.
enum ClientSettings {
    typealias FollowConfiguration = HTTPClient.Configuration.RedirectConfiguration.FollowConfiguration

    /// How a body may grow where the limit cannot be read.
    static let fallbackRatio = 10

    /// How far a body may grow when it is decompressed.
    enum GrowthLimit: Sendable, Equatable {
        case none
        /// Bytes after decompression.
        case size(Int)
        /// Bytes after decompression for each byte before it.
        case ratio(Int)

        func isExceeded(compressed: Int, decompressed: Int) -> Bool {
            switch self {
            case .none: return false
            case .size(let most): return decompressed > most
            case .ratio(let ratio):
                let (most, isOver) = compressed.multipliedReportingOverflow(by: ratio)
                return !isOver && decompressed > most
            }
        }
    }

    /// How redirects are followed; nil if they are not.
    static func redirects(_ configuration: HTTPClient.Configuration) -> FollowConfiguration? {
        child("mode", of: configuration.redirectConfiguration).flatMap { payload(of: $0).value as? FollowConfiguration }
    }

    /// The limit for decompressed bodies; nil if they are not decompressed.
    static func decompression(_ configuration: HTTPClient.Configuration) -> GrowthLimit? {
        guard case .enabled(let limit) = configuration.decompression else { return nil }
        guard let inner = child("limit", of: limit) else { return .ratio(fallbackRatio) }
        let (name, value) = payload(of: inner)
        switch (name, value as? Int) {
        case ("size", let bytes?): return .size(bytes)
        case ("ratio", let ratio?): return .ratio(ratio)
        case (nil, _) where "\(inner)" == "none": return GrowthLimit.none
        default: return .ratio(fallbackRatio)
        }
    }

    /// Whether a request with this content may be sent a second time, to the target of a redirect.
    static func isReplayable(_ content: HTTPClientRequest.Body?) -> Bool {
        guard let content else { return true }
        guard let mode = child("mode", of: content) else { return false }
        let (name, value) = payload(of: mode)
        switch name {
        case "byteBuffer": return true
        case "sequence": return value.flatMap { child("canBeConsumedMultipleTimes", of: $0) } as? Bool ?? false
        default: return false
        }
    }

    private static func child(_ name: String, of value: Any) -> Any? {
        Mirror(reflecting: value).children.first { $0.label == name }?.value
    }

    /// The name of an enumeration's case that has associated values, and these.
    private static func payload(of value: Any) -> (name: String?, value: Any?) {
        let child = Mirror(reflecting: value).children.first
        return (child?.label, child?.value)
    }
}
