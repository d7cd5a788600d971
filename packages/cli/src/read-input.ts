import { readFile, stat } from 'node:fs/promises'
import { usageError } from './command-error.ts'

/** Longest arguments from stdin or a file, in bytes. */
const INPUT_BYTES_MAX = 64 * 1024 * 1024

/**
 * Reads stdin to its end.
 * @throws {CommandError} for more than 64 MiB; the reason of `signal` when it aborts.
 */
export async function readStdin(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const abort = (): void => void process.stdin.destroy()
  signal.addEventListener('abort', abort, { once: true })
  try {
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > INPUT_BYTES_MAX) throw usageError(`stdin holds more than ${INPUT_BYTES_MAX} bytes.`)
      chunks.push(chunk)
    }
  } finally {
    signal.removeEventListener('abort', abort)
  }
  signal.throwIfAborted()
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * Reads a file of arguments.
 * @throws {CommandError} when it cannot be read or is larger than 64 MiB.
 */
export async function readArgumentFile(path: string): Promise<string> {
  try {
    const { size } = await stat(path)
    if (size <= INPUT_BYTES_MAX) return await readFile(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw usageError(`${path} cannot be read (${code}).`)
  }
  throw usageError(`${path} is larger than ${INPUT_BYTES_MAX} bytes.`)
}
