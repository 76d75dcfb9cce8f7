import SystemPackage

/// A body whose file is encrypted: each read opens the chunks that it needs.
final class SealedBody: Sendable {
    let file: BodyFile
    /// Where the body may stay when it was read whole.
    let place: BodyPlace
    let path: FilePath
    let length: Int64
    /// Called with what is wrong.
    private let whenDamaged: @Sendable (String) -> Void

    init(
        _ file: BodyFile, at place: BodyPlace, _ path: FilePath, length: Int64,
        whenDamaged: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.file = file
        self.place = place
        self.path = path
        self.length = length
        self.whenDamaged = whenDamaged
    }

    /// Copies bytes into a buffer, which it fills; both are within its length.
    /// - Throws: `io`; `corruption` if the file is not that of the body.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws {
        do {
            let count = try file.read(into: buffer, at: offset, length: length, path: path)
            if count < buffer.count { throw SealDamage(description: "it ends after \(offset + Int64(count)) bytes") }
        } catch let damage as SealDamage {
            whenDamaged("its file is damaged: \(damage)")
            throw LarderError(sealDamage: damage, path)
        }
    }
}
