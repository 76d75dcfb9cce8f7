import ArgumentParser
import LarderGateway
import Logging

/// A whole number in a range.
enum CountArgument {
    static func parse(_ text: String, in range: ClosedRange<Int>) throws -> Int {
        guard let count = Int(text), range.contains(count) else {
            let most = range.upperBound == .max ? "or more" : "... \(range.upperBound)"
            throw ValidationError("'\(text)' is out of range. Give \(range.lowerBound) \(most).")
        }
        return count
    }
}

/// The name of a cache in `Cache-Status` (RFC 9211): a string of structured fields without what would need escapes.
enum CacheNameArgument {
    static func parse(_ text: String) throws -> String {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) else {
            throw ValidationError("'\(text)': give printable ASCII without spaces and quotation marks.")
        }
        return text
    }
}

/// The form of the access log.
enum LogFormatArgument: String, ExpressibleByArgument, CaseIterable {
    case common, json

    var format: AccessLogConfiguration.Format { self == .common ? .common : .json }
}

/// What is told on standard error.
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
