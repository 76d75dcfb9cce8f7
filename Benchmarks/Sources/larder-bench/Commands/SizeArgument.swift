import ArgumentParser
import Larder

extension BodySize: ExpressibleByArgument {
    /// `100`, `16KiB`, `web`, `wide`.
    init?(argument: String) {
        switch argument {
        case "web": self = .web
        case "wide": self = .wide
        default:
            guard let count = ByteCount(parsing: argument), (1...(256 << 20)).contains(count.bytes) else { return nil }
            self = .fixed(Int(count.bytes))
        }
    }

    /// What the command line takes for it.
    var argument: String {
        switch self {
        case .fixed(let length): "\(length)"
        case .web: "web"
        case .wide: "wide"
        }
    }

    var defaultValueDescription: String { argument }
}
