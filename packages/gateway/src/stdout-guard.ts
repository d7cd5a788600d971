// Over stdio stdout belongs to the protocol alone: whatever else a program writes there would break it, so it goes to stderr.
import { Writable } from 'node:stream'

/** Takes stdout of this process for messages. What others write to it goes to stderr until `release`. */
export function takeStdout(): { readonly output: Writable; release(): void } {
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (write(chunk)) done()
      else stdout.once('drain', () => done())
    },
    decodeStrings: true,
    highWaterMark: 64 * 1024,
  })
  const onError = (error: Error): void => void output.destroy(error)
  stdout.on('error', onError)
  stdout.write = ((...args: Parameters<typeof stderr.write>) => stderr.write(...args)) as typeof stdout.write
  return {
    output,
    release() {
      stdout.write = write
      stdout.off('error', onError)
    },
  }
}
