"""The one door to tables, their files, and the JVM."""
