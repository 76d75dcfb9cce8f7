import SeededData

#if os(Linux)
    import Foundation

    /// A file system that can be made in a file, or in memory.
    struct FileSystemKind: Sendable {
        let name: String
        /// The program that makes it, and its arguments before the name of the file; empty for tmpfs.
        let maker: [String]
        let mountOptions: String
        let bytes: Int
        /// The unit that is written in whole or not at all: a power loss tears a write at these boundaries.
        var sector = 512

        /// Names and data are written back within a second, so that a short run sees it.
        static let forPowerLoss = [
            // Blocks of 1 KiB, which mkfs.ext4 gives a small disk: a page of the index can be there in part.
            FileSystemKind(
                name: "ext4", maker: ext4, mountOptions: "nodiscard,commit=1", bytes: 128 << 20, sector: 512),
            FileSystemKind(
                name: "ext4-writeback", maker: ext4 + ["-b", "4096"], mountOptions: "nodiscard,commit=1,data=writeback",
                bytes: 128 << 20, sector: 512),
            // XFS and btrfs have checksums over blocks of 4 KiB and more, and rely on whole ones.
            FileSystemKind(name: "xfs", maker: xfs, mountOptions: "nodiscard", bytes: 320 << 20, sector: 4096),
            FileSystemKind(
                name: "btrfs", maker: btrfs, mountOptions: "nodiscard,commit=1", bytes: 320 << 20, sector: 4096),
        ]

        /// File systems with different ways of counting blocks. btrfs can reuse space only after its next transaction.
        static let forBudgets = [
            FileSystemKind(name: "ext4", maker: ext4, mountOptions: "defaults", bytes: 320 << 20),
            FileSystemKind(name: "ext4-full", maker: ext4 + ["-m", "0"], mountOptions: "defaults", bytes: 320 << 20),
            FileSystemKind(name: "xfs", maker: xfs, mountOptions: "defaults", bytes: 320 << 20),
            FileSystemKind(name: "btrfs", maker: btrfs, mountOptions: "defaults", bytes: 1 << 30),
            FileSystemKind(
                name: "btrfs-zstd", maker: btrfs, mountOptions: "compress-force=zstd", bytes: 1 << 30),
            // Written on copy, it needs new blocks for whatever is overwritten.
            FileSystemKind(name: "btrfs-full", maker: btrfs, mountOptions: "defaults", bytes: 320 << 20),
            FileSystemKind(name: "tmpfs", maker: [], mountOptions: "size=320m", bytes: 0),
        ]

        private static let ext4 = [
            "mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ]
        private static let xfs = ["mkfs.xfs", "-q", "-K"]
        private static let btrfs = ["mkfs.btrfs", "-q", "-K"]

        /// True if the program that makes it is installed.
        var isAvailable: Bool {
            guard let program = maker.first else { return true }
            return ["/sbin", "/usr/sbin", "/bin", "/usr/bin"].contains { access("\($0)/\(program)", X_OK) == 0 }
        }

        /// Makes the file system in a new file.
        func make(at path: String) throws {
            unlink(path)
            guard FileManager.default.createFile(atPath: path, contents: nil), truncate(path, off_t(bytes)) == 0 else {
                throw Failure("\(path): \(errno)")
            }
            if !maker.isEmpty { try PrivateMounts.command(maker + [path]) }
        }

        /// Mounts a file through a loop device, which goes with the mount.
        func mount(_ file: String, at place: String) throws {
            mkdir(place, 0o700)
            let words = maker.isEmpty ? ["-t", "tmpfs", "-o", mountOptions] : ["-o", "loop,\(mountOptions)"]
            try PrivateMounts.command(["mount"] + words + [file, place])
        }

        /// Leaves the free space in pieces of 4 to 36 KiB, as on a disk that has been in use for long: a larger file
        /// has many extents, and their list takes blocks of its own once it is written.
        func age(_ place: String) throws {
            try FileManager.default.createDirectory(atPath: place + "/old", withIntermediateDirectories: true)
            var generator = SeededGenerator(seed: 1)
            var (count, total) = (0, 0)
            while total < min(bytes, 320 << 20) / 10 * 6 {
                let length = 4096 * Int.random(in: 1...9, using: &generator)
                guard FileManager.default.createFile(atPath: "\(place)/old/\(count)", contents: Data(count: length))
                else {
                    break
                }
                (count, total) = (count + 1, total + length)
            }
            sync()
            for number in 0..<count where number % 2 == 0 { unlink("\(place)/old/\(number)") }
            sync()
        }
    }
#endif
