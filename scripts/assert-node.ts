// First line of every script that matters: the Node that runs must be one of the supported releases.
const supported =
  /^v(22\.(2[4-9]|[3-9]\d|\d{3,}|23\.([4-9]|\d{2,}))|24\.(2[3-9]|[3-9]\d|\d{3,}|22\.([1-9]|\d{2,}))|26\.(1[3-9]|[2-9]\d|\d{3,}|12\.([1-9]|\d{2,}))|(2[7-9]|[3-9]\d)\.)/

if (!supported.test(process.version)) {
  process.stderr.write(
    `Node ${process.version} is not supported (a decoder fault, CVE-2026-111497, or past its end). Use "npm run …", which brings Node 24.22.3 on Linux, or install Node 22.23.4+, 24.22.1+ or 26.12.1+.\n`,
  )
  process.exit(1)
}

export {}
