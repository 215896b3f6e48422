# Whether the gateway says 200 to /livez. In Perl, which is on every Debian and starts in a tenth of the time that Node takes.
use strict;
use Socket qw(getaddrinfo SOCK_STREAM);

$SIG{__DIE__} = sub { print STDERR @_; exit 1 };
my ($host, $port) = ($ENV{HOST} || '127.0.0.1', $ENV{PORT} || 8787);
my ($error, $at) = getaddrinfo($host, $port, { socktype => SOCK_STREAM });
die "$host: $error\n" if $error;
socket(my $gateway, $at->{family}, SOCK_STREAM, 0) or die "$!\n";
connect($gateway, $at->{addr}) or die "$host:$port: $!\n";
syswrite $gateway, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
my $status = <$gateway> || "nothing\n";
die "It says $status" unless $status =~ m{^HTTP/1\.1 200 };
