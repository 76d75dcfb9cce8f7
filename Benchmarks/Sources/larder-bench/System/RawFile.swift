/// System calls on descriptors, under names that no method hides.
enum RawFile {
    /// close(2).
    static func closeFile(_ file: Int32) { _ = close(file) }

    /// write(2).
    static func writeBytes(_ file: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int { write(file, bytes, count) }
}
