import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The settings of `serve` as a JSON file has them: the flags' names in camel case; all may be missing.
///
///     {"origin": ["http://127.0.0.1:9000"], "listen": "127.0.0.1:8080", "budget": "10GB", "accessLog": "-"}
struct ServeSettings: Decodable {
    var origin: [String]?
    var listen: String?
    var forward: Bool?
    var passHost: Bool?
    var admin: String?
    var tlsListen: String?
    var certificate: String?
    var key: String?
    var http2: Bool?
    var tunnel: Bool?
    var tunnelPort: [Int]?
    var purge: Bool?
    var purgeToken: String?
    var threads: Int?
    var budget: String?
    var name: String?
    var accessLog: String?
    var logFormat: String?
    var connectTimeout: Double?
    var readTimeout: Double?
    var idleTimeout: Double?
    var headTimeout: Double?
    var drain: Double?
    var maxHead: String?
    var maxBody: String?
    var maxConnections: Int?
    var hotBodies: String?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case origin, listen, forward, passHost, admin, tlsListen, certificate, key, http2, tunnel, tunnelPort, purge
        case purgeToken, threads, budget, name, accessLog, logFormat, connectTimeout, readTimeout, idleTimeout
        case headTimeout, drain, maxHead, maxBody, maxConnections, hotBodies
    }

    /// Any key, to find those that are not settings.
    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init() {}

    /// Reads a file. A name that is no setting is an error: it is likely to be misspelt.
    init(file path: FilePath) throws {
        let bytes = try FileInput.bytes(of: path)
        do {
            self = try JSONDecoder().decode(Strict.self, from: Data(bytes)).settings
        } catch let error as CommandError {
            throw CommandError(.data, "\(path): \(error.message ?? "")")
        } catch {
            throw CommandError(.data, "\(path) is not a file of settings", cause: error)
        }
    }

    private struct Strict: Decodable {
        let settings: ServeSettings
        init(from decoder: any Decoder) throws {
            let known = Set(CodingKeys.allCases.map(\.rawValue))
            for key in try decoder.container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
                throw CommandError(
                    .data, "'\(key.stringValue)' is no setting; there are \(known.sorted().joined(separator: ", "))")
            }
            settings = try ServeSettings(from: decoder)
        }
    }
}
