import Foundation
import Larder
import LarderValues
import Recipes

/// The size of an image, as a layout needs it before it draws anything.
struct ImageSize: Equatable, Sendable {
    var width: Int
    var height: Int
}

/// Reads the size from the head of a PNG file; the entries are the images themselves.
struct ImageSizeCodec: ValueCodec, Hashable {
    struct NotAnImage: Error {}

    func decode(_ bytes: RawSpan) throws -> ImageSize {
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        guard bytes.byteCount >= 24, bytes.withUnsafeBytes({ $0.starts(with: signature) }) else { throw NotAnImage() }
        func number(at offset: Int) -> Int {
            Int(UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        return ImageSize(width: number(at: 16), height: number(at: 20))
    }

    func encode(_ value: ImageSize) throws -> [UInt8] { throw NotAnImage() }

    /// A size takes a few bytes, however large the image is.
    func cost(of value: ImageSize, length: Int) -> Int { MemoryLayout<ImageSize>.size }
}

/// A list of images, as a server describes it.
struct Album: Codable, Equatable, Sendable {
    var title: String
    var images: [URL]
}

@main
enum DecodedValues {
    static func main() async throws {
        let store = try Store(at: "store")

        // Images are put as they come; their sizes are read from memory after the first time.
        try await store.put(png(width: 640, height: 480), for: "https://a.example/1.png")
        let sizes = store.values(of: ImageSize.self, codec: ImageSizeCodec())
        for _ in 0..<3 {
            let size = try await sizes.get("https://a.example/1.png")
            expect(size == ImageSize(width: 640, height: 480))
        }

        // JSON, downloaded once however many views ask for it.
        let albums = store.values(of: Album.self)
        let album = try await albums.value(for: "https://a.example/album.json") { _ in
            let downloaded = #"{"title": "Sea", "images": ["https://a.example/1.png"]}"#
            let album = try JSONDecoder().decode(Album.self, from: Data(downloaded.utf8))
            return ComputedValue(album, PutOptions(lifetime: .duration(.seconds(3600))))
        }
        expect(album?.title == "Sea")
        try await expect(albums.get("https://a.example/album.json") == album)

        // What is not an image has no size, and says why.
        try await store.put(Array("<html>".utf8), for: "https://a.example/2.png")
        try await expect(sizes.get("https://a.example/2.png") == nil)
        if case .failure(let error)? = try await sizes.result(for: "https://a.example/2.png") {
            print("no size:", error)
        }

        let memory = try await store.perform { try $0.statistics().memoryTier }
        print("\(memory.count) decoded values in \(memory.bytes), found \(memory.hits) times")
        expect(memory.count == 2 && memory.hits >= 1)
        try await store.close()
    }

    /// As much of a PNG file as says how large the image is.
    static func png(width: UInt32, height: UInt32) -> [UInt8] {
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
        for number in [width, height] { withUnsafeBytes(of: number.bigEndian) { bytes += $0 } }
        return bytes + [UInt8](repeating: 0, count: 100_000)
    }
}
