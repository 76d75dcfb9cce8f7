import Foundation

/// A trace of requests in libCacheSim's format `oracleGeneral` (https://github.com/1a1a11a/libCacheSim): records of 24
/// bytes, little endian: `u32` seconds, `u64` object, `u32` bytes, `i64` index of the object's next access.
struct TraceFile {
    /// One request.
    struct Request {
        let object: UInt64
        /// Bytes.
        let size: Int
    }

    let requests: [Request]

    init(requests: [Request]) { self.requests = requests }

    init(_ path: String) throws {
        let data: Data
        do { data = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
            throw BenchError("the trace \(path) cannot be read: \(error.localizedDescription)")
        }
        guard !data.isEmpty, data.count % 24 == 0 else {
            throw BenchError(
                "\(path) is not an oracleGeneral trace: \(data.count) bytes are not a whole number of records of 24")
        }
        requests = data.withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: 24).map { start in
                Request(
                    object: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 4, as: UInt64.self)),
                    size: Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self))))
            }
        }
    }
}
