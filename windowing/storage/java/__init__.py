"""The log stores by which Delta commits in the JVM: their sources, and the JAR of them."""
