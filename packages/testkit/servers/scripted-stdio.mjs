#!/usr/bin/env node
// A stdio server that behaves as its script says. The script is the JSON in the last argument; see ../src/script.ts.
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { createBrain } from './script.mjs'

const script = JSON.parse(process.argv.at(-1))
const { log, stderr = [], banner = [], startDelayMs = 0, exitAtStart, lineEnd = '\n', stubborn = {} } = script

if (log !== undefined) appendFileSync(log, `${JSON.stringify({ event: 'start', pid: process.pid })}\n`)
for (const line of stderr) process.stderr.write(`${line}\n`)
if (exitAtStart !== undefined) process.exit(exitAtStart.code)

if (stubborn.ignoreTerm === true) process.on('SIGTERM', () => {})
for (let index = 0; index < (stubborn.grandchildren ?? 0); index++) startGrandchild()
if (startDelayMs > 0) await new Promise((resolve) => setTimeout(resolve, startDelayMs))
for (const line of banner) process.stdout.write(`${line}\n`)

const brain = createBrain(script)
const line = {
  scope: 'stdio',
  send: (message) => process.stdout.write(`${JSON.stringify(message)}${lineEnd}`),
  aside: (message) => process.stdout.write(`${JSON.stringify(message)}${lineEnd}`),
  noise: (lines) => process.stdout.write(`${lines.join('\n')}\n`),
  drop: () => process.stdout.end(),
  exit(code) {
    if (script.lastWords !== undefined) process.stderr.write(`${script.lastWords}\n`)
    // Answers to earlier messages are still on their way.
    setImmediate(() => process.stdout.write('', () => process.exit(code)))
  },
}

let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop()
  for (const text of lines) if (text.trim() !== '') void brain.receive(JSON.parse(text), line)
})
process.stdin.on('end', () => {
  if (stubborn.ignoreStdinEnd === true) setInterval(() => {}, 60_000)
  else process.exit(0)
})
process.stdout.on('error', () => process.exit(0))

/** A child that ignores what its parent would obey; in a session of its own where the script wants it. */
function startGrandchild() {
  const code = "process.on('SIGTERM', () => {}); process.on('SIGHUP', () => {}); setInterval(() => {}, 60_000)"
  const child = spawn(process.execPath, ['-e', code, 'scripted-grandchild'], {
    stdio: 'ignore',
    detached: stubborn.ownSession === true,
  })
  if (log !== undefined) appendFileSync(log, `${JSON.stringify({ event: 'grandchild', pid: child.pid })}\n`)
  child.unref()
}
