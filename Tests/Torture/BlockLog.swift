#if os(Linux)
    import Foundation

    /// The writes and flushes that a disk received, in order, and what workers reported meanwhile.
    struct BlockLog {
        enum Kind: UInt32 {
            case write = 1
            case flush, said
        }

        struct Record {
            let kind: Kind
            let offset: Int
            let data: Range<Int>
        }

        let bytes: Data
        private(set) var records: [Record] = []

        /// Reads the first bytes of a log; a record that is cut there does not count.
        init(_ path: String, _ length: Int) throws {
            bytes = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped).prefix(length)
            let head = 16
            var at = 0
            bytes.withUnsafeBytes { raw in
                while at + head <= raw.count {
                    let kind = Kind(rawValue: raw.loadUnaligned(fromByteOffset: at, as: UInt32.self))
                    let length = Int(raw.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self))
                    let offset = Int(raw.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self))
                    guard let kind, at + head + length <= raw.count else { break }
                    records.append(Record(kind: kind, offset: offset, data: at + head..<at + head + length))
                    at += head + length
                }
            }
        }

        /// The lines that a record reports.
        func lines(_ record: Record) -> [Substring] {
            String(decoding: bytes[record.data], as: UTF8.self).split(separator: "\n")
        }
    }
#endif
