import HTTPTypes
import Testing

@testable import HTTPWire

struct HeadLinesTests {
    private static let ofConnections = ["connection", "keep-alive", "te"]

    private func lines(_ text: String) throws -> HeadLines { try response("HTTP/1.1 200 OK\r\n\(text)\r\n\r\n").lines }

    private func isOfConnection(_ name: UnsafeRawBufferPointer) -> Bool {
        Self.ofConnections.contains(String(decoding: name, as: UTF8.self).lowercased())
    }

    private func written(_ head: HeadForm) -> [String] {
        var written: [String] = []
        head.forEachField { name, value in
            written.append(String(decoding: name, as: UTF8.self) + ": " + String(decoding: value, as: UTF8.self))
        }
        return written
    }

    @Test func fieldsOfTheConnectionGo() throws {
        var head = try lines("a: 1\r\nConnection:  Keep-Alive \r\nKEEP-ALIVE: 5\r\nTE: x\r\nConnection: close\r\nB:\t2")
        let isDone = head.removeConnectionFields(isOfConnection)
        #expect(isDone)
        head.added[.via] = "1.1 x"
        #expect(written(.lines(head)) == ["a: 1", "B: 2", "Via: 1.1 x"])
        #expect(written(.objects(head.response)) == ["a: 1", "B: 2", "Via: 1.1 x"])
    }

    @Test(arguments: [
        "Connection: A", "Connection: close, A", "Connection: close,", "Connection:", "A: 1\r\n 2",
        "Connection:\r\n close",
    ]) func linesThatDoNotTellStay(_ text: String) throws {
        // Folded lines that say where the message ends are refused before.
        guard var head = try? lines("\(text)\r\nTE: x") else { return }
        let isDone = head.removeConnectionFields(isOfConnection)
        #expect(!isDone)
        #expect(head.response.headerFields.map(\.name.rawName).last == "TE")
    }

    @Test func someFieldsAreMadeIntoObjects() throws {
        let head = try lines("a: 1\r\nA: 2\r\n 3\r\nB: 4\r\nb: \u{e9}")
        #expect(head.fields { $0.spells("a") }.map(\.value) == ["1", "2 3"])
        #expect(head.fields { $0.spells("c") }.isEmpty)
        #expect(head.contains("b") && !head.contains("c") && !head.contains("ab"))
        #expect(head.response.headerFields.last?.withUnsafeBytesOfValue { Array($0) } == [0xE9])
    }

    @Test func textsAreFoundInValues() throws {
        let head = try lines("A: x, No-Store=1\r\nB: private\r\nC: no-stor")
        func mentions(_ text: StaticString, _ name: StaticString) -> Bool {
            head.mentions(["other", text], in: { $0.spells(name) })
        }
        #expect(mentions("no-store", "a") && mentions("private", "b") && mentions("x", "a") && mentions("1", "a"))
        #expect(!mentions("no-store", "b") && !mentions("no-store", "c") && !mentions("no-store", "d"))
    }

    @Test func aHeadThatIsChangedBecomesObjects() throws {
        var form = HeadForm.lines(try lines("a: 1"))
        form.response.headerFields[.age] = "5"
        #expect(written(form) == ["a: 1", "Age: 5"])
        #expect(form.status == .ok)
    }
}
