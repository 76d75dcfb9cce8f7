import Foundation
import SystemPackage

/// Bytes written to the device below a directory: the sectors of `/sys/dev/block/MAJOR:MINOR/stat`, which other
/// programs add to as well. Linux; nil for a file system without a device, such as tmpfs.
///
/// Not `write_bytes` of `/proc/self/io`: kernels count whole large folios there, ten times what is written.
struct DeviceWrites: Sendable {
    private let path: String

    init?(below directory: FilePath) {
        var status = stat()
        guard directory.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
        let device = UInt64(status.st_dev)
        let major = (device >> 8) & 0xFFF | (device >> 32) & 0xFFFF_F000
        let minor = device & 0xFF | (device >> 12) & 0xFFFF_FF00
        path = "/sys/dev/block/\(major):\(minor)/stat"
        guard FileManager.default.isReadableFile(atPath: path) else { return nil }
    }

    /// Bytes since the machine started. What is still in memory is not in it: sync first.
    func bytes() -> Int64? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let fields = text.split(whereSeparator: \.isWhitespace)
        return fields.count > 6 ? Int64(fields[6]).map { $0 * 512 } : nil
    }

    /// Waits until the device rests, for at most 20 seconds: a file system with `discard` tells it for seconds after a
    /// removal, behind the back of sync(2), which blocks are free, and what is measured meanwhile pays for that.
    func settle() {
        var (last, rests) = ("", 0)
        for _ in 0..<400 where rests < 4 {
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            rests = text == last ? rests + 1 : 0
            last = text
            usleep(50_000)
        }
    }
}
