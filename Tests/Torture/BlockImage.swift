import SeededData

#if os(Linux)
    import Foundation

    /// The bytes of a disk: those that are certainly on it, and those that may be.
    final class BlockImage {
        private let bytes: UnsafeMutableRawBufferPointer
        /// The blocks that are not all zeros.
        private var isUsed: [Bool]
        private static let block = 4096

        /// Reads a file.
        init(_ path: String) throws {
            let data = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
            // SAFETY: this object owns the memory, and frees it in `deinit`.
            bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: data.count, alignment: Self.block)
            isUsed = [Bool](repeating: false, count: data.count / Self.block)
            data.withUnsafeBytes { bytes.copyMemory(from: $0) }
            for number in isUsed.indices {
                let words = UnsafeRawBufferPointer(
                    rebasing: bytes[number * Self.block..<(number + 1) * Self.block]
                ).assumingMemoryBound(to: UInt64.self)
                isUsed[number] = words.contains { $0 != 0 }
            }
        }

        deinit { bytes.deallocate() }

        /// The disk keeps a write.
        func apply(_ record: BlockLog.Record, of log: BlockLog) {
            log.bytes.withUnsafeBytes { raw in
                UnsafeMutableRawBufferPointer(rebasing: bytes[record.offset..<record.offset + record.data.count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[record.data]))
            }
            for number in record.offset / Self.block...(record.offset + record.data.count - 1) / Self.block {
                isUsed[number] = true
            }
        }

        /// Writes the bytes to a file.
        func save(to path: String) throws {
            close(try newFile(path))
        }

        /// Writes a file in which each of the writes is present in whole, in part, or not at all.
        ///
        /// - Parameter share: how many of a hundred writes are present in whole.
        /// - Parameter sector: a write is torn at multiples of it.
        func save(
            to path: String, adding writes: ArraySlice<BlockLog.Record>, of log: BlockLog, share: Int, sector: Int,
            seed: UInt64
        ) throws {
            let descriptor = try newFile(path)
            defer { close(descriptor) }
            var generator = SeededGenerator(seed: seed)
            try log.bytes.withUnsafeBytes { raw in
                for write in writes where write.kind == .write {
                    if Int.random(in: 0..<100, using: &generator) < share {
                        try put(descriptor, raw, write.data, at: write.offset)
                    } else if generator.oneIn(4) {
                        // ext4 has one checksum over the two sectors of its superblock, and cannot be mounted without
                        // it.
                        let sector = write.offset < Self.block ? max(sector, Self.block) : sector
                        for start in stride(from: 0, to: write.data.count, by: sector) where generator.oneIn(2) {
                            let from = write.data.lowerBound + start
                            try put(
                                descriptor, raw, from..<min(from + sector, write.data.upperBound),
                                at: write.offset + start)
                        }
                    }
                }
            }
        }

        /// Writes the bytes to a file, and returns its descriptor.
        private func newFile(_ path: String) throws -> Int32 {
            unlink(path)
            let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0, ftruncate(descriptor, off_t(bytes.count)) == 0 else {
                throw Failure("\(path): \(errno)")
            }
            var next = isUsed.firstIndex(of: true)
            while let start = next {
                let end = isUsed[start...].firstIndex(of: false) ?? isUsed.count
                try put(
                    descriptor, UnsafeRawBufferPointer(bytes), start * Self.block..<end * Self.block,
                    at: start * Self.block)
                next = isUsed[end...].firstIndex(of: true)
            }
            return descriptor
        }

        private func put(_ descriptor: Int32, _ raw: UnsafeRawBufferPointer, _ range: Range<Int>, at offset: Int) throws
        {
            var done = 0
            while done < range.count {
                let count = pwrite(
                    descriptor, raw.baseAddress! + range.lowerBound + done, range.count - done, off_t(offset + done))
                guard count > 0 else { throw Failure("pwrite: \(errno)") }
                done += count
            }
        }
    }
#endif
