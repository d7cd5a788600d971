#!/usr/bin/env node
// Checks the Node version and answers --version before anything else is loaded. Written so that every Node there ever was can
// read it: a syntax error would not tell anybody what to install.
'use strict'

var VERSION = '0.1.0'
/** First release of each line without the Brotli memory corruption, CVE-2026-111497; other lines below 27 never got the fix. */
var FIXED = { 22: [23, 4], 24: [22, 1], 26: [12, 1] }

function isUsable(version) {
  var parts = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (parts === null) return false
  var major = Number(parts[1])
  if (major > 26) return true
  var fixed = FIXED[major]
  if (fixed === undefined) return false
  var minor = Number(parts[2])
  return minor > fixed[0] || (minor === fixed[0] && Number(parts[3]) >= fixed[1])
}

var DANGER = 'this is Node '.concat(
  process.version,
  ', whose decompression code can be made to corrupt memory by any server (CVE-2026-111497).',
)
var REMEDY =
  'install Node 24.22.1 or later (also good: 22.23.4 or later of 22, 26.12.1 or later), for example from https://nodejs.org.'

/** What programs read on stdout. An answer to `call` always has an outcome. */
function refusal(words) {
  var error = { code: 'NODE_REFUSED', message: DANGER.concat(' ', REMEDY) }
  if (words.indexOf('call') < 0) return { version: 1, error: error }
  return { version: 1, outcome: 'failed', content: [], error: error }
}

if (!isUsable(process.version)) {
  if (process.argv.indexOf('--json') >= 0) {
    process.stdout.write(JSON.stringify(refusal(process.argv.slice(2))).concat('\n'))
  }
  process.stderr.write('convoke: '.concat(DANGER, '\nconvoke: ', REMEDY, '\n'))
  process.exitCode = 4
} else if (process.argv.length === 3 && (process.argv[2] === '--version' || process.argv[2] === '-V')) {
  process.stdout.write(VERSION.concat('\n'))
} else {
  keepCompiled()
  require('../dist/convoke.cjs')
}

/**
 * Lets Node keep the compiled form of the command between runs, in the person's own cache folder. The default place would be a
 * folder in the shared temporary one, where somebody else could put code for us to run.
 */
function keepCompiled() {
  var cache = cacheFolder(process.env)
  if (!cache || !require('node:path').isAbsolute(cache)) return
  require('node:module').enableCompileCache(cache.concat('/convoke/compiled'))
}

function cacheFolder(env) {
  var home = env.HOME || env.USERPROFILE
  if (env.XDG_CACHE_HOME) return env.XDG_CACHE_HOME
  if (process.platform === 'win32') return env.LOCALAPPDATA
  if (!home) return undefined
  return home.concat(process.platform === 'darwin' ? '/Library/Caches' : '/.cache')
}
