import GRPCCore
import Larder
import LarderObjects

/// What a name in a call of `ByteStream` stands for.
///
/// `[INSTANCE/]blobs/[sha256/]HASH/SIZE`, and `[INSTANCE/]uploads/UUID/blobs/[sha256/]HASH/SIZE[/anything]`, where
/// `compressed-blobs/COMPRESSOR` may stand in the place of `blobs`. Remote Execution API, `ContentAddressableStorage`.
struct ResourceName: Equatable {
    /// Segments with slashes between them; empty for none.
    var instance: String
    var digest: Digest
    var length: Int64
    /// Of an upload, chosen by the client.
    var upload: String?

    /// - Throws: `RPCError`: `invalidArgument`.
    static func parse(_ name: String, isUpload: Bool) throws -> ResourceName {
        func refusal(_ text: String) -> RPCError { RPCError(code: .invalidArgument, message: text) }
        guard name.utf8.count <= 4_096 else { throw refusal("A resource name has at most 4,096 bytes.") }
        let segments = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let kinds: Set = ["blobs", "compressed-blobs"]
        let start: Int
        if isUpload {
            guard let index = segments.firstIndex(of: "uploads"), index + 2 < segments.count,
                kinds.contains(segments[index + 2])
            else { throw refusal("An upload is named [INSTANCE/]uploads/UUID/blobs/HASH/SIZE.") }
            start = index
        } else {
            guard let index = segments.firstIndex(where: kinds.contains) else {
                throw refusal("A blob is named [INSTANCE/]blobs/HASH/SIZE.")
            }
            start = index
        }
        var rest = segments[(isUpload ? start + 2 : start)...]
        if rest.removeFirst() == "compressed-blobs" {
            throw refusal("Compressed blobs are not served: the capabilities of this server list no compressor.")
        }
        if rest.first == "sha256" { rest.removeFirst() }
        guard rest.count >= 2, let hash = rest.popFirst(), hash.utf8.count == 64,
            let digest = Digest(hexadecimal: hash)
        else { throw refusal("A blob is named by 64 hexadecimal digits, its SHA-256, and its length.") }
        guard let text = rest.popFirst(), let length = Int64(text), length >= 0, text.first != "+" else {
            throw refusal("The length of a blob is a decimal number.")
        }
        guard digest != ObjectStore.empty || length == 0 else {
            throw refusal("That is the SHA-256 of no bytes, not of \(length).")
        }
        // More may follow the name of an upload, for the client's own use.
        guard isUpload || rest.isEmpty else { throw refusal("The name continues after the blob.") }
        return ResourceName(
            instance: segments[..<start].joined(separator: "/"), digest: digest, length: length,
            upload: isUpload ? segments[start + 1] : nil)
    }
}
