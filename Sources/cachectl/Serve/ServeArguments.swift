import ArgumentParser
import LarderGateway
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

/// The format of the access log.
enum LogFormatArgument: String, ExpressibleByArgument, CaseIterable {
    case common, json

    var format: AccessLogConfiguration.Format { self == .common ? .common : .json }
}

/// The least severe messages to log on standard error.
enum LogLevelArgument: String, ExpressibleByArgument, CaseIterable {
    case error, warning, info, debug

    var level: Logger.Level {
        switch self {
        case .error: .error
        case .warning: .warning
        case .info: .info
        case .debug: .debug
        }
    }
}
