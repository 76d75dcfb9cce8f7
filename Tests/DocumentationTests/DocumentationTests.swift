import Foundation
import Testing

@testable import Larder

/// The documents say what the code does: their Swift blocks compile, their links lead somewhere, and the worked
/// examples of the format are what the code writes.
struct DocumentationTests {
    @Test(arguments: try Documents.all() + Documents.articles())
    func everySwiftBlockIsCompiled(document: String) throws {
        let files =
            try Documents.files("Tests/DocumentationTests", "swift") + Documents.files("Examples/Sources", "swift")
        let compiled = try files.map { Documents.normalised(try Documents.text($0)) }
        for block in Documents.blocks(of: "swift", in: try Documents.text(document)) {
            let block = Documents.normalised(block)
            #expect(
                compiled.contains { $0.contains(block) },
                "\(document) has a Swift block that neither Tests/DocumentationTests nor Examples/ has:\n\(block)")
        }
    }

    /// Blocks of text hold layouts and signatures, which would not compile: each function of a signature is there.
    @Test func everyFunctionOfASignatureExists() throws {
        let sources = try Documents.files("Sources", "swift").map { try Documents.text($0) }.joined()
        for document in try Documents.all() {
            for block in Documents.blocks(of: "text", in: try Documents.text(document)) {
                #expect(
                    !block.contains(/(?m)^\s*(let|var|await|try|#expect|@Test|import)\b/),
                    "\(document): a text block of code")
                for match in block.matches(of: /\bfunc (\w+)/) {
                    let isThere = sources.contains("func \(match.1)(") || sources.contains("func \(match.1)<")
                    #expect(isThere, "\(document) names a function '\(match.1)'")
                }
            }
        }
    }

    @Test func everyProgramOfTheCookbookIsInAnArticle() throws {
        let manifest = try Documents.text("Examples/Package.swift")
        let articles = try Documents.articles().filter { $0.contains("/Cookbook/") }
        let programs = try Documents.files("Examples/Sources", "swift").filter {
            !$0.contains("/Recipes/") && !$0.contains("/Hello/")
        }
        #expect(programs.count >= 12 && programs.count == articles.count)
        let index = try Documents.text("docs/cookbook.md")
        for program in programs {
            let name = String(try #require(program.split(separator: "/").last).dropLast(".swift".count))
            #expect(index.contains("[\(name).swift](../\(program))"), "docs/cookbook.md does not name \(name)")
            #expect(manifest.contains("rogram(\"\(name)\")"), "Examples/Package.swift has no program \(name)")
            let article = try #require(articles.first { $0.hasSuffix("/\(name).md") }, "no article on \(name)")
            #expect(
                Documents.blocks(of: "swift", in: try Documents.text(article)) == [
                    String(try Documents.text(program).dropLast())
                ],
                "\(article) and \(program) differ: copy the program into the article")
        }
    }

    @Test func readmeBeginsWithAProgramThatIsRun() throws {
        let blocks = Documents.blocks(of: "swift", in: try Documents.text("README.md"))
        #expect(blocks == [String(try Documents.text("Examples/Sources/Hello/main.swift").dropLast())])
    }

    @Test func everyLibraryProductHasACatalogueThatToolsDocsReads() throws {
        let script = try Documents.text("tools/docs")
        let modules = try #require(script.firstMatch(of: /modules=\((.*)\)/)).1.split(separator: " ").map(String.init)
        let products = try Documents.text("Package.swift").matches(of: /\.library\(name: "([A-Z]\w+)"/)
        #expect(Set(modules) == Set(products.map { String($0.1) }))
        for module in modules {
            let pages = try Documents.articles().filter { $0.hasPrefix("Sources/\(module)/\(module).docc/") }
            #expect(
                try pages.contains { try Documents.text($0).hasPrefix("# ``\(module)``\n") },
                "\(module) has no landing page")
        }
    }

    @Test(arguments: try Documents.all())
    func everyRelativeLinkLeadsToAFile(document: String) throws {
        let folder = Documents.root.appendingPathComponent(document).deletingLastPathComponent()
        for target in Documents.linkTargets(in: try Documents.text(document)) where !target.contains("://") {
            let path = target.split(separator: "#", omittingEmptySubsequences: false)[0]
            if path.isEmpty { continue }
            #expect(
                FileManager.default.fileExists(atPath: folder.appendingPathComponent(String(path)).path),
                "\(document) links to \(target), which does not exist")
        }
    }

    @Test func entryRecordIsTheOneOfTheFormatDocument() throws {
        let record = FormatExamples.entry
        #expect(try Documents.hexDump("entry-record") == record.bytes)
        let decoded = record.bytes.withUnsafeBytes { EntryRecord($0) }
        #expect(decoded == record)
    }

    @Test func inlineBlobRecordIsTheOneOfTheFormatDocument() throws {
        let body = Array("hello".utf8)
        let head = FormatExamples.bytes(FormatExamples.inlineBlob(body))
        #expect(try Documents.hexDump("blob-record-inline") == head + body)
    }

    @Test func fileBlobRecordIsTheOneOfTheFormatDocument() throws {
        #expect(try Documents.hexDump("blob-record-file") == FormatExamples.bytes(FormatExamples.fileBlob))
    }
}

/// The field values of the worked examples in `docs/format.md`.
enum FormatExamples {
    static var entry: EntryRecord {
        var record = EntryRecord()
        record.version = 3
        record.policy = .session
        record.isPinned = true
        record.hits = 7
        record.id = 5
        record.embedded = EntryRecord.Embedded(Array("hello".utf8), Digest.of(Array("hello".utf8)))
        record.length = 5
        record.stamp = 9
        record.stored = 1_767_225_600_000_000
        record.accessed = 1_767_225_660_000_000
        record.expires = 1_767_229_200_000_000
        record.created = 1_767_225_600_000_000
        record.session = 0x0123_4567_89AB_CDEF
        record.tags = ["news", "eu"]
        record.metadata = Array("text/plain".utf8)
        record.seal(for: Array("https://example.com/".utf8), Digest.of(Array("hello".utf8)))
        return record
    }

    static func inlineBlob(_ body: [UInt8]) -> BlobRecord {
        var head = BlobRecord(digest: Digest.of(body))
        head.length = UInt64(body.count)
        head.storedLength = UInt64(body.count)
        return head
    }

    static var fileBlob: BlobRecord {
        var head = BlobRecord(digest: Digest.of([UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)))
        head.location = .file
        head.length = 1_000_000
        head.storedLength = 1_000_000
        head.allocated = 1_003_520
        head.epoch = 2
        head.token = StagingToken(instance: 0x0123_4567_89AB_CDEF, sequence: 17)
        return head
    }

    static func bytes(_ head: BlobRecord) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: head.headLength)
        bytes.withUnsafeMutableBytes { head.write(to: $0) }
        return bytes
    }
}
