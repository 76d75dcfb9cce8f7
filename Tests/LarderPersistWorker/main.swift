// A separate process for tests of `LarderPersistDriver`:
//
//     LarderPersistWorker STORE NAME COUNT
//
// Opens the store, prints `ready` and waits for a line. Then creates the keys 0 to COUNT - 1 with NAME as the value,
// prints how many of them another process had not created before, and waits to be killed.

import Foundation
import Hummingbird
import Larder
import LarderHummingbird

let arguments = CommandLine.arguments
guard arguments.count == 4, let count = Int(arguments[3]) else { fatalError("LarderPersistWorker STORE NAME COUNT") }
let driver = LarderPersistDriver(try Store(at: arguments[1]))
say("ready")
_ = readLine()
var created = 0
for number in 0..<count {
    do {
        try await driver.create(key: "\(number)", value: arguments[2])
        created += 1
    } catch let error as PersistError where error == .duplicate {}
}
say("\(created)")
_ = readLine()

/// Not `print`, which holds a line back when the output is a pipe.
func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
}
