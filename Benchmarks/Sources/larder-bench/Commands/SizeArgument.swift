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
}
