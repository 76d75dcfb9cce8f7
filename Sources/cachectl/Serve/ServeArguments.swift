import ArgumentParser
import HTTPCaching
import HTTPTypes
import Larder
import LarderServer
import Logging

/// A whole number in a range.
enum CountArgument {
    static func parse(_ text: String, in range: ClosedRange<Int>) throws -> Int {
        guard let count = Int(text), range.contains(count) else {
            let most = range.upperBound == .max ? "or more" : "... \(range.upperBound)"
            throw ValidationError("'\(text)' is out of range. Use \(range.lowerBound) \(most).")
        }
        return count
    }
}

/// The name of a cache in `Cache-Status` (RFC 9211): a structured-field string without characters that need escapes.
enum CacheNameArgument {
    static func parse(_ text: String) throws -> String {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) else {
            throw ValidationError(
                "'\(text)' is not a valid name. Use printable ASCII without spaces, quotation marks and backslashes.")
        }
        return text
    }
}

/// A content coding: a token (RFC 9110 section 8.4.1).
enum ContentCodingArgument {
    static func parse(_ text: String) throws -> String {
        let isToken = text.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                || "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
        guard isToken, !text.isEmpty else {
            throw ValidationError(
                "'\(text)' is not a content coding. Use a name such as gzip; for several, repeat the flag.")
        }
        return text.lowercased()
    }
}

/// What to do with a response that sets a cookie.
enum SetCookieArgument: String, ExpressibleByArgument, CaseIterable {
    case explicit, never, ignore

    var policy: CachingOptions.SetCookiePolicy {
        switch self {
        case .explicit: .requireExplicitFreshness
        case .never: .neverStore
        case .ignore: .ignore
        }
    }
}

/// The name of a header field.
enum KeptFieldArgument {
    /// Without what a 304 says in these, a cache could not tell how long and for whom its response counts.
    private static let updated: Set<String> = [
        "age", "cache-control", "cdn-cache-control", "date", "etag", "expires", "last-modified", "vary",
    ]

    static func parse(_ text: String) throws -> HTTPField.Name {
        guard let name = HTTPField.Name(text), !text.hasPrefix(":") else {
            throw ValidationError("'\(text)' is not the name of a field. Use a name such as Content-Encoding.")
        }
        guard !updated.contains(name.canonicalName) else {
            throw ValidationError(
                "--keep-field \(text): the cache needs the value from a 304 and always uses it.")
        }
        return name
    }
}

/// The token for PURGE. An empty one, as of a variable that is not set, would allow no one.
enum PurgeTokenArgument {
    static func parse(_ text: String) throws -> String {
        guard !text.isEmpty else { throw ValidationError("--purge-token is empty. Give a token, or leave it out.") }
        return text
    }
}

/// The format of the access log.
enum LogFormatArgument: String, ExpressibleByArgument, CaseIterable {
    case common, json

    var format: AccessLogConfiguration.Format { self == .common ? .common : .json }
}

/// The least severe messages to log on standard error.
struct LogLevelArgument {
    private static let levels: [String: Logger.Level] = [
        "error": .error, "warning": .warning, "info": .info, "debug": .debug,
    ]
    /// Those of the engine, and of the HTTP cache, the gateway, the object server and packages.
    private static let categories =
        LogCategory.allCases.map(\.description) + [
            "connections", "origins", "packages", "purging", "reading", "requests", "results", "settings", "store",
            "storing",
        ]
    static let names = ["error", "warning", "info", "debug"]

    static let standard = LogLevelArgument(level: .warning)

    /// Of messages in no category with a level of its own.
    var level: Logger.Level
    /// By category.
    var categories: [String: Logger.Level] = [:]

    private init(level: Logger.Level) { self.level = level }

    /// A level, or some `CATEGORY=LEVEL`, or both, separated by commas.
    static func parse(_ text: String) throws -> LogLevelArgument {
        var result = standard
        for (index, part) in text.split(separator: ",", omittingEmptySubsequences: false).enumerated() {
            let pair = part.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
            guard pair.count <= 2, let name = pair.last, let level = levels[name] else {
                throw ValidationError(
                    "'\(part)' is not a level. Use \(names.joined(separator: ", ")), or CATEGORY=LEVEL.")
            }
            if pair.count == 1 {
                guard index == 0 else { throw ValidationError("'\(part)': the level of all categories comes first.") }
                result.level = level
            } else {
                guard categories.contains(pair[0]) else {
                    throw ValidationError(
                        "there is no category '\(pair[0])'. The categories: \(categories.sorted().joined(separator: ", "))."
                    )
                }
                result.categories[pair[0]] = level
            }
        }
        return result
    }

    /// Makes these the levels of running loggers.
    func apply(to levels: LogLevels) {
        levels.level = level
        levels.set(categories)
    }
}
