# The image of the CronJob: a program, and quorlock, which runs it under the lock.
FROM debian:trixie-slim
COPY --from=quorlock/quorlock:0.1.0 /quorlock /usr/bin/quorlock
COPY report.sh /usr/local/bin/report.sh
USER 65534:65534
